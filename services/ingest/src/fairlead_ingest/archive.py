"""`session.archive`: put a session away, once."""

from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import change, maybe, reached
from fairlead_schema.commands import Reached, SessionCommand
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_session import switches


async def archive(desk: Desk, tenant: TenantId, command: SessionCommand) -> Reached:
    """Put it away; what is away already stays so."""
    at = Address(tenant, command.session_id)
    return reached(await change(desk, at, lambda session: maybe(switches.archive(session))))
