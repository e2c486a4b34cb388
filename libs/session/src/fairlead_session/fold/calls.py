"""Folds local tool calls: called, started, deferred, permitted, settled once."""

from typing import Any, TypeAlias, assert_never

from fairlead_schema.events import (
    PermissionReplied,
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.record import Recorded
from fairlead_session.frozen import replace
from fairlead_session.state.asks import PendingPermission
from fairlead_session.state.calls import Grant, UnsettledCall
from fairlead_session.state.session import Session

CallEvent: TypeAlias = (
    ToolCalled | ToolStarted | ToolDeferred | ToolSucceeded | ToolFailed | PermissionReplied
)


def evolve(session: Session, event: CallEvent, recorded: Recorded) -> tuple[UnsettledCall, ...]:
    """Apply one event of a call. A call that the provider executes is not ours to settle."""
    match event:
        case ToolCalled():
            if event.provider.executed:
                return session.calls
            return (*session.calls, _open(session, event, recorded.seq))
        case ToolStarted(worker=worker):
            return _change(session.calls, event, worker=worker)
        case ToolDeferred(until=until):
            return _change(session.calls, event, deferred_until=until)
        case ToolSucceeded() | ToolFailed():
            return tuple(call for call in session.calls if not _is_call_of(event, call))
        case PermissionReplied():
            pending = session.asks.permissions.get(event.request_id)
            if pending is None or event.reply == "reject":
                return session.calls
            return tuple(_grant(call, pending) for call in session.calls)
        case _:
            assert_never(event)


def find_call(
    session: Session, assistant_message_id: MessageId, call_id: CallId
) -> UnsettledCall | None:
    """The unsettled call with this identity."""
    for call in session.calls:
        if call.call_id == call_id and call.assistant_message_id == assistant_message_id:
            return call
    return None


def _open(session: Session, event: ToolCalled, seq: int) -> UnsettledCall:
    attempt = session.turn.attempt
    return UnsettledCall(
        assistant_message_id=event.assistant_message_id,
        call_id=event.call_id,
        tool=event.tool,
        input=event.input,
        agent=event.agent or (attempt.agent if attempt else ""),
        retry=event.retry or "once",
        revision=event.revision,
        called_seq=seq,
    )


def _change(
    calls: tuple[UnsettledCall, ...],
    event: ToolStarted | ToolDeferred,
    **changes: Any,  # noqa: ANN401 - the fields of a call
) -> tuple[UnsettledCall, ...]:
    return tuple(replace(call, **changes) if _is_call_of(event, call) else call for call in calls)


def _grant(call: UnsettledCall, pending: PendingPermission) -> UnsettledCall:
    source = pending.request.source
    key = (call.assistant_message_id, call.call_id)
    if source is None or (source.message_id, source.call_id) != key:
        return call
    grant = Grant(pending.request.action, pending.request.resources)
    return replace(call, grants=(*call.grants, grant))


def _is_call_of(
    event: ToolStarted | ToolDeferred | ToolSucceeded | ToolFailed, call: UnsettledCall
) -> bool:
    return (call.call_id, call.assistant_message_id) == (event.call_id, event.assistant_message_id)
