"""Folds local tool calls: called, started, settled once."""

from typing import Any, TypeAlias, assert_never

from fairlead_schema.events import (
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.ids import CallId, MessageId
from fairlead_session.calls.child_ids import TASK, child_of
from fairlead_session.calls.read_directories import touch
from fairlead_session.frozen import replace
from fairlead_session.input.fingerprint import call_fingerprint
from fairlead_session.state import Session, UnsettledCall

CallEvent: TypeAlias = ToolCalled | ToolStarted | ToolDeferred | ToolSucceeded | ToolFailed


def evolve(session: Session, event: CallEvent, seq: int) -> Session:
    """Apply one event of a call. What the provider executes itself is not ours to settle."""
    match event:
        case ToolCalled():
            return session if event.provider.executed else _called(session, event, seq)
        case ToolStarted():
            return _changed(session, event, worker=event.worker)
        case ToolDeferred():
            return _changed(session, event, deferred_until=event.until)
        case ToolSucceeded() | ToolFailed():
            return _settled(session, event)
        case _:
            assert_never(event)


def find(
    session: Session, assistant_message_id: MessageId, call_id: CallId
) -> UnsettledCall | None:
    """A call that is not settled."""
    return next(
        (
            call
            for call in session.calls
            if (call.assistant_message_id, call.call_id) == (assistant_message_id, call_id)
        ),
        None,
    )


def _called(session: Session, event: ToolCalled, seq: int) -> Session:
    attempt = session.attempt
    call = UnsettledCall(
        assistant_message_id=event.assistant_message_id,
        call_id=event.call_id,
        tool=event.tool,
        input=event.input,
        agent=event.agent or (attempt.agent if attempt else ""),
        retry=event.retry or "once",
        revision=event.revision,
        called_seq=seq,
    )
    made = call_fingerprint(event.tool, event.input)
    repeats = session.repeats + 1 if made == session.last_call else 1
    below = session.below
    if call.tool == TASK:
        child = child_of(session.id, call.assistant_message_id, call.call_id)
        below = replace(below, owing=(*below.owing, child))
    calls = (*session.calls, call)
    return replace(session, calls=calls, last_call=made, repeats=repeats, below=below)


def _changed(session: Session, event: ToolStarted | ToolDeferred, **changes: Any) -> Session:  # noqa: ANN401
    calls = tuple(
        replace(call, **changes) if _same(call, event) else call for call in session.calls
    )
    return replace(session, calls=calls)


def _settled(session: Session, event: ToolSucceeded | ToolFailed) -> Session:
    """A settled call leaves; the last one stirs the session, which may be parked.

    Settled because of an interrupt, it asks for nothing: what is pending waits.
    """
    calls = tuple(call for call in session.calls if not _same(call, event))
    if len(calls) == len(session.calls):
        return session
    if isinstance(event, ToolSucceeded):
        call = next(call for call in session.calls if _same(call, event))
        session = touch(session, call, event.structured)
    stirs = not calls and not session.interrupted
    return replace(session, calls=calls, stirring=session.stirring or stirs)


def _same(
    call: UnsettledCall, event: ToolStarted | ToolDeferred | ToolSucceeded | ToolFailed
) -> bool:
    return (call.assistant_message_id, call.call_id) == (
        event.assistant_message_id,
        event.call_id,
    )
