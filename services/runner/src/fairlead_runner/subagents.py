"""Parent and child sessions: an interrupt goes down, an answer and the usage go up."""

import logging
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.service_command import send_service_command
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_runner.calls.requests import CallRequest, send_calls
from fairlead_runner.runner_context import RunnerContext
from fairlead_schema import subjects
from fairlead_schema.errors import Refused, SessionNotFound
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import SessionId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_session.calls.subagents import (
    awaited_children,
    call_of_child,
    count_children,
    next_unread,
    uncounted_children,
)
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 5.0


async def interrupt_children(eventlog: EventLog, at: Address, session: Session) -> None:
    """Interrupt every child session that a call of this one waits for.

    Raises LogError while no service takes an interrupt. The parent then stays interrupted, and its
    next drain tries again: no child works on after its parent has stopped.
    """
    subject = subjects.api(at.tenant, "session.interrupt")
    for child in awaited_children(session):
        extra = {"session_id": child}
        try:
            await send_service_command(
                eventlog.requests, subject, {"sessionID": child}, timeout_s=TIMEOUT_S
            )
        except SessionNotFound:
            # The creator of a child looks at the parent first, so this child never starts.
            log.info("child session not created yet: nothing to interrupt", extra=extra)
        except Refused as refusal:
            reason = {"reason": f"{refusal.tag}: {refusal}"}
            log.warning("child refused the interrupt: its parent stops alone", extra=extra | reason)
        else:
            log.info("child session interrupted", extra=extra)


async def count_child_usage(
    reader: SessionWriter[Session], at: Address, session: Session
) -> tuple[SessionEvent, ...]:
    """The usage of children whose calls were settled without them. Raises LogUnavailable.

    A budget covers the whole tree, so this is read before each provider call. The usage of a child
    that cannot be read stays unknown, and the parent does not wait for it.
    """
    children: dict[SessionId, Session] = {}
    while (child := next_unread(uncounted_children(session), children)) is not None:
        try:
            # Confirmed, because a replica that lags would show a child that used nothing.
            children[child] = (await reader.read_confirmed(Address(at.tenant, child))).state
        except RecordError as error:
            extra = {"session_id": child, "reason": str(error)}
            log.warning("child session cannot be read: its usage is not counted", extra=extra)
            children[child] = Session(id=child)
    return count_children(session, children)


async def notify_parent(context: RunnerContext, at: Address, session: Session) -> None:
    """Have a worker look at the parent's call that this resting session may answer."""
    parent_id = session.profile.parent_id if session.profile else None
    if parent_id is None:
        return
    parent_at = Address(at.tenant, parent_id)
    parent = (await context.sessions.load_confirmed(parent_at)).state
    call = call_of_child(parent, session.id)
    if call is not None:
        request = CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        # The token makes one request for each rest of the child.
        token = f"{session.id}:{session.seq}"
        pool = context.pool_of(parent)
        await send_calls(context.eventlog, parent_at, pool, [request], token=token)
