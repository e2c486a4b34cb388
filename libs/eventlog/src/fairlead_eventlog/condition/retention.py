"""How long and how much the streams keep, as an operator sets it."""

from dataclasses import dataclass, replace
from typing import Final

from fairlead_eventlog.streams import (
    ATTACHMENTS,
    DAY_S,
    DEAD,
    EVENTS,
    MESSAGES,
    OUTPUTS,
    RECEIPTS,
    SNAPSHOTS,
    STREAMS,
    UNDELIVERED,
    StreamSpec,
    log_stream,
)
from fairlead_schema.subjects import SHARDS

LOGS: Final = frozenset(log_stream(shard) for shard in range(SHARDS))


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of the streams. Zero means no limit."""

    log_bytes: int = 0
    """Of all shards together."""
    feed_days: int = 0
    feed_bytes: int = 0
    message_id_days: int = 90
    output_days: int = 7
    output_bytes: int = 0
    attachment_bytes: int = 0
    receipt_days: int = 7
    receipt_bytes: int = 0
    dead_letter_days: int = 30
    dead_letter_bytes: int = 0
    snapshot_days: int = 0
    snapshot_bytes: int = 0


DEFAULT_RETENTION: Final = Retention()


def limited_streams(retention: Retention = DEFAULT_RETENTION) -> tuple[StreamSpec, ...]:
    """The declared streams with these limits."""
    limits = {
        EVENTS.name: (retention.feed_days, retention.feed_bytes),
        MESSAGES.name: (retention.message_id_days, 0),
        OUTPUTS.name: (retention.output_days, retention.output_bytes),
        ATTACHMENTS.name: (0, retention.attachment_bytes),
        RECEIPTS.name: (retention.receipt_days, retention.receipt_bytes),
        DEAD.name: (retention.dead_letter_days, retention.dead_letter_bytes),
        SNAPSHOTS.name: (retention.snapshot_days, retention.snapshot_bytes),
        UNDELIVERED.name: (retention.dead_letter_days, 0),
    } | dict.fromkeys(LOGS, (0, retention.log_bytes // SHARDS))
    return tuple(_limit(spec, *limits.get(spec.name, (0, 0))) for spec in STREAMS)


def describe_limits(max_age_s: int, max_bytes: int) -> str:
    """The limits of a stream in words; empty without any."""
    age = f"{max_age_s // DAY_S} days" if max_age_s > 0 else ""
    size = f"{max_bytes:,} bytes" if max_bytes > 0 else ""
    return " and ".join(part for part in (age, size) if part)


def _limit(spec: StreamSpec, days: int, size: int) -> StreamSpec:
    limited = replace(spec, max_age_s=days * DAY_S, max_bytes=size or -1)
    # A full log refuses new commits: an old one is the truth, and nothing replaces it.
    return replace(limited, discard="new") if spec.name in LOGS and size else limited
