"""`session.delete`: purge a session. It is gone at once; the projector then erases what it left."""

from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import change, reached
from fairlead_schema.commands import Reached, SessionCommand
from fairlead_schema.events import SessionPurged
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_session.waiting import close


async def delete(desk: Desk, tenant: TenantId, command: SessionCommand) -> Reached:
    """Write the last word (docs/adr/0012): every older owner and writer is fenced by it."""
    at = Address(tenant, command.session_id)
    # In a commit of its own: the last word stands alone.
    await change(desk, at, close)
    return reached(await change(desk, at, lambda _session: (SessionPurged(),)))
