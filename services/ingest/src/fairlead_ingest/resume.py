"""`session.resume`: run at least one turn, or join the one that runs."""

from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import change, maybe, reached
from fairlead_schema.commands import Reached, SessionCommand
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_session import requests


async def resume(desk: Desk, tenant: TenantId, command: SessionCommand) -> Reached:
    """Ask for it durably, and for somebody to come."""
    at = Address(tenant, command.session_id)
    session = await change(desk, at, lambda found: maybe(requests.resume(found)))
    desk.waker.wake(at)
    return reached(session)
