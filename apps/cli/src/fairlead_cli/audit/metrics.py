"""The metrics of the auditor. A violation is counted by its rule; the log line names the session."""

from typing import Final

from prometheus_client import Counter, Gauge

COMMITS: Final = Counter("fairlead_audit_commits", "Commits that the auditor has verified.")
RECEIPTS: Final = Counter(
    "fairlead_audit_receipts", "Answers of the intake that the auditor held against the log."
)
VIOLATIONS: Final = Counter(
    "fairlead_audit_violations", "Rules that the log broke, by rule. Must stay 0.", ("rule",)
)
LAG: Final = Gauge("fairlead_audit_lag_commits", "Commits that the auditor has not verified yet.")
HELD: Final = Gauge(
    "fairlead_audit_sessions_held", "Sessions whose rules the auditor has in memory."
)
