"""The metrics of quotas, which every service that keeps a quota shares. No label names a tenant."""

from typing import Final

from prometheus_client import Counter

QUOTA_REACHED: Final = Counter(
    "fairlead_quota_reached", "Work that a reached quota refused, delayed or cut.", ("quota",)
)
QUOTA_UNKNOWN: Final = Counter(
    "fairlead_quota_unknown", "Checks that passed because nobody said what the tenant uses."
)
