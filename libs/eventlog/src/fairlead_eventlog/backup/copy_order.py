"""Which streams a backup copies, and in which order, so that what it holds fits together.

Every copy begins after the backup began, so it holds all that was acknowledged before. The order decides
what happens to the rest. Whoever names something else is copied before what it names.
"""

from typing import Final

from fairlead_eventlog.streams import (
    APPROVALS,
    ATTACHMENTS,
    CHECKPOINTS,
    DEAD,
    EVENTS,
    HOOK_STATES,
    JOBS,
    LOG_STATUS,
    MESSAGES,
    ORIGINS,
    OUTPUTS,
    PROMPTS,
    RECEIPTS,
    REGISTRATIONS,
    SCHEDULES,
    SNAPSHOTS,
    SOURCES,
    STREAMS,
    TIMERS,
    TOOLS,
    TRANSFORMS,
    UNDELIVERED,
    WAKES,
    WEBHOOKS,
    log_stream,
)
from fairlead_schema.subjects import SHARDS

CHUNK_BYTES: Final = 256 * 1024
"""The size of a piece in which a server sends and takes a stream."""
LOGS: Final = tuple(log_stream(shard) for shard in range(SHARDS))

BEFORE_LOG: Final = (
    # The checkpoint of the feed never passes the feed, and the feed never passes the log.
    CHECKPOINTS.name,
    EVENTS.name,
    # A prompt leaves the queue when the log has it. In both it is an exact retry, in neither it is lost.
    PROMPTS.name,
    RECEIPTS.name,
    # A run that is noted is in the log; one that is not noted is asked for again, under the same id.
    HOOK_STATES.name,
    LOG_STATUS.name,
)
AFTER_LOG: Final = (
    # An id is bound before its prompt is admitted, and an object is stored before an event names it.
    MESSAGES.name,
    OUTPUTS.name,
    ATTACHMENTS.name,
    APPROVALS.name,
    REGISTRATIONS.name,
    SOURCES.name,
    ORIGINS.name,
    TRANSFORMS.name,
    WEBHOOKS.name,
    SCHEDULES.name,
    UNDELIVERED.name,
    DEAD.name,
)
LEFT_OUT: Final = {
    WAKES.name: "hints: the sweep wakes each session that has work",
    TOOLS.name: "hints: runners ask again for each call that is open",
    TIMERS.name: "hints: the sweep finds each session whose time has come",
    JOBS.name: "their workers are gone: a call that may run once is settled as interrupted",
    SNAPSHOTS.name: "a cache of the log",
}
WITH_CONSUMERS: Final = frozenset({EVENTS.name})
"""Clients of the feed go on where they were. All other consumers are made again."""

COPY_ORDER: Final = (*((name,) for name in BEFORE_LOG), LOGS, AFTER_LOG)
"""The names of each step are copied at the same time, and the steps one after another."""
RESTORE_ORDER: Final = (*AFTER_LOG, *BEFORE_LOG, *LOGS)
"""The log comes last: no service can work before it is there."""


def unknown_streams() -> frozenset[str]:
    """Declared streams that nobody decided about: a test keeps this empty."""
    return frozenset(spec.name for spec in STREAMS) - {*RESTORE_ORDER, *LEFT_OUT}
