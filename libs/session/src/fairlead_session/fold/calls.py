"""Folds local tool calls: called, started, deferred, permitted, settled once."""

from typing import Final, TypeAlias

from fairlead_schema.events import (
    PermissionReplied,
    ShellEnded,
    ShellStarted,
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.events.tools import NOBODY
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.record import Recorded
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.asks import PendingPermission
from fairlead_session.state.calls import Grant, UnsettledCall
from fairlead_session.state.session import Session

Calls: TypeAlias = tuple[UnsettledCall, ...]

SHELL_TOOL: Final = "bash"
"""The tool that runs a person's own command, under the same permissions and in the same sandbox."""


def find_call(
    session: Session, assistant_message_id: MessageId, call_id: CallId
) -> UnsettledCall | None:
    """The unsettled call with this identity."""
    for call in session.calls:
        if call.call_id == call_id and call.assistant_message_id == assistant_message_id:
            return call
    return None


def start_call(call: UnsettledCall, worker: WorkerId) -> UnsettledCall:
    """The call after a worker has started it. The same worker may start the call again.

    A call that was given back has no worker, and the start of the worker that left does not count.
    A `once` call that was started is never given back.
    """
    if worker == NOBODY:
        back = replace(call, worker=None, starts=max(call.starts - 1, 0))
        return call if call.retry == "once" else back
    return replace(call, worker=worker, starts=call.starts + (call.worker != worker))


def _call(session: Session, event: ToolCalled, recorded: Recorded) -> Calls:
    """A call that the provider executes is not ours to settle."""
    if event.provider.executed:
        return session.calls
    attempt = session.turn.attempt
    call = UnsettledCall(
        assistant_message_id=event.assistant_message_id,
        call_id=event.call_id,
        tool=event.tool,
        input=event.input,
        agent=event.agent or (attempt.agent if attempt else ""),
        retry=event.retry or "once",
        revision=event.revision,
        called_seq=recorded.seq,
    )
    return (*session.calls, call)


def _start_shell(session: Session, event: ShellStarted, recorded: Recorded) -> Calls:
    """A person's own command becomes a call of `bash`, which never runs twice."""
    if event.agent is None:
        return session.calls
    call = UnsettledCall(
        assistant_message_id=event.message_id,
        call_id=event.call_id,
        tool=SHELL_TOOL,
        input={"command": event.command},
        agent=event.agent,
        retry="once",
        revision=None,
        called_seq=recorded.seq,
        by_person=True,
    )
    return (*session.calls, call)


def _end_shell(session: Session, event: ShellEnded, _recorded: Recorded) -> Calls:
    key = (event.message_id, event.call_id)
    return tuple(call for call in session.calls if (call.assistant_message_id, call.call_id) != key)


def _start(session: Session, event: ToolStarted, _recorded: Recorded) -> Calls:
    return tuple(
        start_call(call, event.worker) if _is_call_of(event, call) else call
        for call in session.calls
    )


def _defer(session: Session, event: ToolDeferred, _recorded: Recorded) -> Calls:
    return tuple(
        replace(call, deferred_until=event.until) if _is_call_of(event, call) else call
        for call in session.calls
    )


def _settle(session: Session, event: ToolSucceeded | ToolFailed, _recorded: Recorded) -> Calls:
    return tuple(call for call in session.calls if not _is_call_of(event, call))


def _permit(session: Session, event: PermissionReplied, _recorded: Recorded) -> Calls:
    pending = session.asks.permissions.get(event.request_id)
    if pending is None or event.reply == "reject":
        return session.calls
    return tuple(_grant(call, pending) for call in session.calls)


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


REDUCERS: Final[Reducers[Calls]] = {
    ToolCalled: _call,
    ToolStarted: _start,
    ToolDeferred: _defer,
    ToolSucceeded: _settle,
    ToolFailed: _settle,
    PermissionReplied: _permit,
    ShellStarted: _start_shell,
    ShellEnded: _end_shell,
}
