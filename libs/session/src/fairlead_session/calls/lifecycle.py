"""Calling: whether a worker may run a call, and how the call is settled. The log fences both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    SessionPurged,
    ToolDeferred,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.tools.content import ErrorInfo, Executor, ToolContent
from fairlead_session.execution.ownership import ProcessLife
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_session.fold.calls import find_call
from fairlead_session.frozen import replace
from fairlead_session.people.pending import pending_ask
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class Begin:
    """Write this, and the call is yours to run until another worker starts it after you."""

    event: ToolStarted
    call: UnsettledCall

    @property
    def started(self) -> UnsettledCall:
        """The call as the log holds it once the event is written."""
        return replace(self.call, worker=self.event.worker)


@dataclass(frozen=True, slots=True)
class Settle:
    """It was started, its worker is gone and it may not run again: its outcome is unknown."""

    event: ToolFailed


@dataclass(frozen=True, slots=True)
class LeaveToWorker:
    """Another worker runs it, as far as anybody knows."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class WaitsForPerson:
    """A person is asked: nothing runs before the answer, and the answer brings a new request."""


@dataclass(frozen=True, slots=True)
class NotOpen:
    """Settled, interrupted or never called: nothing is to be done."""


@dataclass(frozen=True, slots=True)
class DeferredCall:
    """Somebody outside works on it, and may take until then."""

    call: UnsettledCall
    until: int


Beginning: TypeAlias = Begin | Settle | LeaveToWorker | WaitsForPerson | DeferredCall | NotOpen


@dataclass(frozen=True, slots=True)
class Succeeded:
    """What a tool returned."""

    structured: Mapping[str, Any] = field(default_factory=dict)
    content: tuple[ToolContent, ...] = ()
    output_paths: tuple[str, ...] | None = None
    facts: tuple[SessionEvent, ...] = ()
    """What else became true: written in the commit that settles the call, or not at all."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no result, in words for the model."""

    message: str
    facts: tuple[SessionEvent, ...] = ()


Outcome: TypeAlias = Succeeded | Failed

HaltReason: TypeAlias = Literal["interrupted", "lost"]
"""Why a run must stop: somebody interrupted or purged the session, or the call is another worker's."""

INTERRUPTED = Failed(INTERRUPTED_TOOL)


def begin(
    session: Session,
    assistant_message_id: MessageId,
    call_id: CallId,
    worker: WorkerId,
    owner_life: ProcessLife | None,
) -> Beginning:
    """Decide for a worker that does not run the call now.

    `owner_life` is what is known of the worker that started it; one of which nothing is known is
    left alone, because liveness may only ever delay a call, never run it twice.
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
    event = ToolStarted(
        assistant_message_id=assistant_message_id,
        call_id=call_id,
        worker=worker,
        generation=session.execution.generation,
    )
    return Begin(event, call)


def settle(session: Session, call: UnsettledCall, outcome: Outcome) -> tuple[SessionEvent, ...]:
    """The one settlement of a call, or nothing: it is settled, or another worker started it since."""
    if find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    return settlement_events(call, outcome)


def settlement_events(call: UnsettledCall, outcome: Outcome) -> tuple[SessionEvent, ...]:
    """The events of a call's outcome, for whoever knows that the call is theirs to settle."""
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
    """Leave a started call to whoever settles it from outside; nothing if it is not the worker's."""
    if find_call(session, call.assistant_message_id, call.call_id) != call:
        return ()
    return (
        ToolDeferred(
            assistant_message_id=call.assistant_message_id, call_id=call.call_id, until=until
        ),
    )


def progress(
    session: Session,
    call: UnsettledCall,
    structured: Mapping[str, Any],
    content: tuple[ToolContent, ...],
) -> tuple[ToolProgressed, ...]:
    """How far a call has come, or nothing: it is settled, or another worker started it since."""
    if find_call(session, call.assistant_message_id, call.call_id) != call:
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
    """Whether an event that was written after the start ends the run of the call."""
    match event:
        case InterruptRequested() | SessionPurged():
            return "interrupted"
        case ToolStarted() | ToolSucceeded() | ToolFailed():
            mine = isinstance(event, ToolStarted) and event.worker == call.worker
            same = (event.assistant_message_id, event.call_id) == (
                call.assistant_message_id,
                call.call_id,
            )
            return "lost" if same and not mine else None
        case _:
            return None


def failure_event(call: UnsettledCall, outcome: Failed) -> ToolFailed:
    """The event of a call that has no result."""
    return ToolFailed(
        assistant_message_id=call.assistant_message_id,
        call_id=call.call_id,
        error=ErrorInfo(message=outcome.message),
        provider=Executor(),
    )
