"""The life of a call: whether a worker may run it, and how it is settled. The log fences both.

`begin` returns more than events: the worker runs, waits, or gives the request back, and each
decision says which. All other deciders return events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    SessionPurged,
    ShellEnded,
    ToolDeferred,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.events.tools import NOBODY
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent, ToolContent
from fairlead_session.execution.ownership import ProcessLife
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_session.fold.calls import find_call, start_call
from fairlead_session.people.pending import pending_ask
from fairlead_session.state.calls import UnsettledCall, may_have_effect
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class Begin:
    """Start the call. The worker runs it until another worker starts it."""

    event: ToolStarted
    call: UnsettledCall

    @property
    def started_call(self) -> UnsettledCall:
        """The call after the event is written."""
        return start_call(self.call, self.event.worker)


@dataclass(frozen=True, slots=True)
class Settle:
    """Fail a call whose worker is gone and that may not run again."""

    event: ToolFailed | ShellEnded


@dataclass(frozen=True, slots=True)
class LeaveToWorker:
    """Another worker runs the call, as far as the log and liveness know."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class WaitsForPerson:
    """A person must answer first. The answer sends a new request."""


@dataclass(frozen=True, slots=True)
class NotOpen:
    """The call is settled, or its session was interrupted, or it never existed."""


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """Another service settles the call before a time."""

    call: UnsettledCall
    until: int


Beginning: TypeAlias = Begin | Settle | LeaveToWorker | WaitsForPerson | DeferredCall | NotOpen


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The result of a tool."""

    structured: Mapping[str, Any] = field(default_factory=dict)
    content: tuple[ToolContent, ...] = ()
    output_paths: tuple[str, ...] | None = None
    facts: tuple[SessionEvent, ...] = ()
    """More events, written in the commit that settles the call."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a call has no result. The message is for the model."""

    message: str
    facts: tuple[SessionEvent, ...] = ()
    unseen: bool = False
    """Nobody saw how the run ended. Unless the call is `pure`, its outcome is unknown."""


Outcome: TypeAlias = Succeeded | Failed

ProgressReport: TypeAlias = tuple[Mapping[str, Any], tuple[ToolContent, ...]]
"""How far a tool says that it is: structured, and as content for people."""

HaltReason: TypeAlias = Literal["interrupted", "lost"]
"""Why a run must stop: the session was interrupted or purged, or another worker has the call."""

INTERRUPTED = Failed(INTERRUPTED_TOOL, unseen=True)

# A call that ends its workers must not go through the whole pool, worker by worker.
STARTS_MAX: Final = 3
WORKERS_DIED: Final = Failed(
    f"{STARTS_MAX} workers started this call and none of them finished it, so it is not started "
    "again. The call may be too much for a worker: try a smaller part, or another way.",
    unseen=True,
)


def begin(
    session: Session,
    assistant_message_id: MessageId,
    call_id: CallId,
    worker: WorkerId,
    owner_life: ProcessLife | None,
) -> Beginning:
    """Decide for a worker that does not run the call now.

    `owner_life` says whether the worker that started the call lives. If that is not known, the call
    is left to it: liveness may delay a call and must never run it twice.
    """
    call = find_call(session, assistant_message_id, call_id)
    if call is None or session.execution.interrupted:
        return NotOpen()
    if call.deferred_until is not None:
        return DeferredCall(call, call.deferred_until)
    if pending_ask(session, call) is not None:
        return WaitsForPerson()
    if call.worker not in {None, worker} and owner_life in {None, "alive"}:
        assert call.worker is not None
        return LeaveToWorker(call.worker)
    if call.worker is not None and call.retry == "once":
        return Settle(failure_event(call, INTERRUPTED))
    if call.starts >= STARTS_MAX and call.worker != worker:
        return Settle(failure_event(call, WORKERS_DIED))
    event = ToolStarted(
        assistant_message_id=assistant_message_id,
        call_id=call_id,
        worker=worker,
        generation=session.execution.generation,
    )
    return Begin(event, call)


def settle(
    session: Session,
    call: UnsettledCall,
    outcome: Outcome,
    unwritten: ProgressReport | None = None,
) -> tuple[SessionEvent, ...]:
    """Settle a call once. Nothing if it is settled, or another worker has started it since.

    A failure keeps the last progress, so progress that is not in the log is written with it (E-28).
    """
    if find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    if call.by_person:
        return (*outcome.facts, _shell_end(call, outcome, unwritten))
    kept = unwritten if isinstance(outcome, Failed) else None
    last = () if kept is None else progress(session, call, *kept)
    return (*last, *settlement_events(call, outcome))


def settlement_events(call: UnsettledCall, outcome: Outcome) -> tuple[SessionEvent, ...]:
    """The events of an outcome, for a caller that knows that the call is open and its own."""
    if call.by_person:
        return (*outcome.facts, _shell_end(call, outcome, None))
    if isinstance(outcome, Failed):
        return (*outcome.facts, failure_event(call, outcome))
    succeeded = ToolSucceeded(
        assistant_message_id=call.assistant_message_id,
        call_id=call.call_id,
        structured=dict(outcome.structured),
        content=outcome.content,
        output_paths=outcome.output_paths,
        provider=Executor(),
    )
    return (*outcome.facts, succeeded)


def defer(session: Session, call: UnsettledCall, until: int) -> tuple[SessionEvent, ...]:
    """Leave a started call to another service. Nothing if the call is not the worker's."""
    if find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    return (
        ToolDeferred(
            assistant_message_id=call.assistant_message_id, call_id=call.call_id, until=until
        ),
    )


def first_deadline(session: Session) -> int | None:
    """The first deadline of the calls that other services have in their queues."""
    deadlines = (call.deferred_until for call in session.calls)
    return min((time for time in deadlines if time is not None), default=None)


def give_back(session: Session, call: UnsettledCall) -> tuple[SessionEvent, ...]:
    """Give a call back, for a worker that leaves. Nothing if the call is not its own, or is `once`."""
    if call.retry == "once" or find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    return (
        ToolStarted(
            assistant_message_id=call.assistant_message_id,
            call_id=call.call_id,
            worker=NOBODY,
            generation=session.execution.generation,
        ),
    )


def progress(
    session: Session,
    call: UnsettledCall,
    structured: Mapping[str, Any],
    content: tuple[ToolContent, ...],
) -> tuple[ToolProgressed, ...]:
    """Report progress of a call. Nothing if it is settled, or another worker has started it since.

    Clients know no progress of a person's own command: its end has the whole output.
    """
    if call.by_person or find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    return (
        ToolProgressed(
            assistant_message_id=call.assistant_message_id,
            call_id=call.call_id,
            structured=dict(structured),
            content=content,
        ),
    )


def halt_reason(call: UnsettledCall, event: SessionEvent) -> HaltReason | None:
    """Why an event after the start of a call ends its run. None if the run goes on."""
    match event:
        case InterruptRequested() | SessionPurged():
            return "interrupted"
        case ToolStarted() | ToolSucceeded() | ToolFailed():
            own_start = isinstance(event, ToolStarted) and event.worker == call.worker
            same_call = (event.assistant_message_id, event.call_id) == (
                call.assistant_message_id,
                call.call_id,
            )
            return "lost" if same_call and not own_start else None
        case ShellEnded(message_id=message_id, call_id=call_id):
            same_call = (message_id, call_id) == (call.assistant_message_id, call.call_id)
            return "lost" if same_call else None
        case _:
            return None


def failure_event(call: UnsettledCall, outcome: Failed) -> ToolFailed | ShellEnded:
    """The event of a failed call."""
    if call.by_person:
        return _shell_end(call, outcome, None)
    return ToolFailed(
        assistant_message_id=call.assistant_message_id,
        call_id=call.call_id,
        error=ErrorInfo(
            message=outcome.message,
            outcome="unknown" if outcome.unseen and may_have_effect(call) else None,
        ),
        provider=Executor(),
    )


def _shell_end(
    call: UnsettledCall, outcome: Outcome, unwritten: ProgressReport | None
) -> ShellEnded:
    """The end of a person's own command: its text, or what came before its failure and why.

    The tool that runs commands says the exit code as `exit`.
    """
    code = None
    if isinstance(outcome, Failed):
        before = () if unwritten is None else unwritten[1]
        texts = (*_texts(before), outcome.message)
    else:
        texts, code = _texts(outcome.content), outcome.structured.get("exit")
    return ShellEnded(
        message_id=call.assistant_message_id,
        call_id=call.call_id,
        output="\n".join(texts),
        exit=code if isinstance(code, int) else None,
    )


def _texts(content: tuple[ToolContent, ...]) -> tuple[str, ...]:
    return tuple(part.text for part in content if isinstance(part, TextContent) and part.text)
