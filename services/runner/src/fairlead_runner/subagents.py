"""Sessions above and below: an interrupt reaches down, an answer is told upwards."""

import logging
from typing import Final

from pydantic_core import to_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.session_cache import SessionCache
from fairlead_runner.tool_calls import CallRequest, send_calls
from fairlead_schema import subjects
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


async def stop_below(eventlog: EventLog, at: Address, session: Session) -> None:
    """Interrupt every session that this one's calls wait for.

    Raises LogError while nobody takes the interrupt: the session stays interrupted until all below
    it were told, whoever stops it.
    """
    for child in awaited_children(session):
        body = to_json({"sessionID": child})
        subject = subjects.api(at.tenant, "session.interrupt")
        answer = await eventlog.requests.request(subject, body, timeout_s=TIMEOUT_S)
        # A child that was never made has nothing to stop: whoever makes it looks here first.
        log.info("interrupted below", extra={"session_id": child, "answer": answer.decode()})


async def count_below(
    folded: SessionCache[Session], at: Address, session: Session
) -> tuple[SessionEvent, ...]:
    """What sessions used whose calls were settled without them. Raises LogUnavailable.

    Looked up before each provider call, because a budget reaches the whole tree. Of one that cannot
    be read nothing is known, and nobody waits for it.
    """
    known: dict[SessionId, Session] = {}
    while (child := next_unread(uncounted_children(session), known)) is not None:
        try:
            known[child] = (await folded.load(Address(at.tenant, child))).state
        except RecordError as error:
            log.warning("use unknown", extra={"session_id": child, "reason": str(error)})
            known[child] = Session(id=child)
    return count_children(session, known)


async def tell_above(
    eventlog: EventLog, folded: SessionCache[Session], at: Address, session: Session, *, pool: str
) -> None:
    """A session that rests may be the answer to a call: have that looked at now."""
    parent_id = session.profile.parent_id if session.profile else None
    if parent_id is None:
        return
    above = Address(at.tenant, parent_id)
    parent = (await folded.load(above)).state
    call = call_of_child(parent, session.id)
    if call is not None:
        request = CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        # One request for each time the child rests.
        await send_calls(eventlog, above, pool, [request], token=f"{session.id}:{session.seq}")
