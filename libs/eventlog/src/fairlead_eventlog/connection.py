"""One connection to the log's servers, with everything Fairlead asks of them."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_eventlog.ports import (
    Approvals,
    DeadLetters,
    Deltas,
    Feed,
    Liveness,
    MessageRegister,
    Outputs,
    Registrations,
    Requests,
    SessionLog,
    ShardLog,
    Snapshots,
    SourceRegister,
    Timers,
    Wakes,
    WorkQueue,
)


@dataclass(frozen=True, slots=True)
class EventLog:
    """All ports over one medium, real or in memory."""

    log: SessionLog
    shards: ShardLog
    wakes: Wakes
    work: WorkQueue
    timers: Timers
    liveness: Liveness
    snapshots: Snapshots
    messages: MessageRegister
    sources: SourceRegister
    registrations: Registrations
    deltas: Deltas
    outputs: Outputs
    requests: Requests
    feed: Feed
    dead: DeadLetters
    approvals: Approvals
    complaint: Callable[[], str | None]
    """Why the servers cannot be reached now, if so."""
