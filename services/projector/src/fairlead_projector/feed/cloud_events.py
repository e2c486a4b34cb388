"""The attributes of CloudEvents 1.0 for one event of the feed, as the headers of its message (binary mode)."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from fairlead_schema.ids import TenantId
from fairlead_schema.raw_records.raw_commit import RawEvent
from fairlead_schema.session_values.event_names import client_type
from fairlead_schema.subjects import ROOT, Address

SPECVERSION: Final = "1.0"
CONTENT_TYPE: Final = "application/json"


def source_of(tenant: TenantId) -> str:
    """The context in which the ids of events are unique: one tenant."""
    return f"/{ROOT}/{tenant}"


def cloud_event_headers(at: Address, event: RawEvent) -> dict[str, str]:
    """The headers of a feed message. Its body stays the envelope, which is the data of the CloudEvent."""
    kind = event.kind
    return {
        "ce-specversion": SPECVERSION,
        "ce-id": event.id,
        "ce-source": source_of(at.tenant),
        "ce-type": client_type(kind.type, notice=kind.visibility == "notice"),
        "ce-subject": at.session_id,
        "ce-time": _rfc3339(event.time),
        "content-type": CONTENT_TYPE,
    }


def _rfc3339(ms: int) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Many events happen in one second, and to format a date takes longer than all other headers."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
