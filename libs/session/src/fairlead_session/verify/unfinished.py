"""Finds requested work that a log leaves undone, without using the fold."""

from collections.abc import Iterable
from typing import Final

from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    ExecutionRecovered,
    ExecutionReleased,
    InputCancelled,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    SessionEvent,
    ShellEnded,
    ShellRequested,
    StepEnded,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.record import Recorded
from fairlead_session.verify.verify import GOES_ON, LogReading

# The reasons of a rest that ends an interrupt.
STOPPED: Final = frozenset({"interrupted", "declined"})


class _RequestedWork:
    """Whether somebody asked for work since the last rest, and whether a turn is owed."""

    def __init__(self) -> None:
        self.requested = False
        self.owed = False
        self.interrupted = False
        self.compaction = False
        self.shells: list[MessageId] = []
        self._resumed = False
        self._called: MessageId | None = None

    def check(self, event: SessionEvent, *, unsettled: bool, under_way: bool) -> None:
        match event:
            case PromptAdmitted():
                self.requested = self.requested or event.resume is not False
            case ResumeRequested(forced=forced):
                self.requested = True
                self.owed = self.owed or forced is not False
                self._resumed = self.interrupted and forced is not False
            case InterruptRequested():
                self.requested, self._resumed, self.compaction = False, False, False
                self.interrupted = under_way
                self.owed = self.owed and under_way
            case CompactionRequested():
                self.compaction = True
            case CompactionEnded() | CompactionFailed(reason="manual"):
                self.compaction = False
            case ExecutionReleased(reason=reason):
                self.requested = self.requested and reason in GOES_ON
                self.compaction = self.compaction and reason in GOES_ON
                self.interrupted = False
                self.owed = self._resumed if reason in STOPPED else self.owed
                self._resumed = False
            case ShellRequested(prompt_id=None, message_id=id_):
                self.shells.append(id_)
            case ShellEnded(message_id=id_) | InputCancelled(message_id=id_):
                self.shells = [shell for shell in self.shells if shell != id_]
            case ToolSucceeded() | ToolFailed():
                self.requested = self.requested or not (unsettled or self.interrupted)
            case _:
                self._check_turn(event)

    def _check_turn(self, event: SessionEvent) -> None:
        match event:
            case PromptPromoted() | ExecutionRecovered() | TurnRetried() | AttemptOverflowed():
                self.owed = True
            case AttemptDispatched():
                self.owed = False
            case ToolCalled() if not event.provider.executed:
                self._called = event.assistant_message_id
            case StepEnded(assistant_message_id=id_):
                self.owed = self._called == id_
            case StepFailed():
                self.owed = False
            case _:
                pass


def find_unfinished_work(events: Iterable[Recorded]) -> tuple[str, ...]:
    """One sentence for each piece of undone work. Nothing for a session that may rest."""
    reading, work = LogReading(), _RequestedWork()
    for recorded in events:
        reading.read(recorded)
        calls, owned = bool(reading.calls.unsettled), reading.ownership.owner is not None
        waits = bool(work.shells) or reading.attempts.open is not None
        under_way = calls or owned or waits
        work.check(recorded.event, unsettled=calls, under_way=under_way)
    if reading.purged:
        return ()
    attempt, parked = reading.attempts.open, bool(reading.calls.unsettled)
    running = tuple(call for call in reading.calls.unsettled if call not in reading.asks.calls)
    if parked and not running and not work.interrupted:
        return ()  # Only an answer of a person moves the session on.
    return (
        *(("an interrupt is not honoured",) if work.interrupted else ()),
        *(f"call {call_id} is not settled" for _message_id, call_id in running),
        *((f"attempt {attempt.attempt_id} has no outcome",) if attempt and not parked else ()),
        *(("a compaction was asked for",) if work.compaction else ()),
        *(f"command {id_} has not run" for id_ in work.shells if not parked),
        *(("a turn is owed",) if work.requested and work.owed else ()),
        *(f"input {id_} is pending" for id_ in reading.inbox.pending if work.requested),
    )
