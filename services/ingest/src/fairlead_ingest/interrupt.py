"""`session.interrupt`: stop the active drain, keep the inbox."""

from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import change, maybe, reached
from fairlead_schema.commands import Reached, SessionCommand
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_session import requests
from fairlead_session.state import Session
from fairlead_session.waiting import close


async def interrupt(desk: Desk, tenant: TenantId, command: SessionCommand) -> Reached:
    """Ask for it durably, and see that it is honoured even when the owner is dead."""
    at = Address(tenant, command.session_id)
    session = await change(desk, at, _stopped)
    if session.interrupted and session.owner is not None:
        await desk.eventlog.liveness.nudge(session.owner.runner, at)
    if session.interrupted:
        desk.waker.attend(at)
    return reached(session)


def _stopped(session: Session) -> tuple[SessionEvent, ...]:
    """The interrupt, and the answer to everything that waits for people here."""
    return (*close(session), *maybe(requests.interrupt(session)))
