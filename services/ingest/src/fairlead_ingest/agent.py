"""`session.agent`: later turns speak as another agent."""

from fairlead_ingest.create import check_agent
from fairlead_ingest.desk import Desk
from fairlead_ingest.existing import change, load, reached
from fairlead_schema.commands import Reached, SwitchAgent
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.switches import switch_agent


async def agent(desk: Desk, tenant: TenantId, command: SwitchAgent) -> Reached:
    """Switch to a configured agent."""
    at = Address(tenant, command.session_id)
    await load(desk, at)
    check_agent(desk.settings.config, command.agent)
    switched = switch_agent(ids.message_id(), command.agent)
    return reached(await change(desk, at, lambda _session: (switched,)))
