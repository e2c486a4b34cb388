"""`session.agent`: later turns speak as another agent."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.create import check_agent
from fairlead_ingest.verbs.sessions import change, load, reached
from fairlead_schema.commands.session import ExecutionReached, SwitchAgent
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.switches import switch_agent


async def agent(context: ContextDep, tenant: TenantParam, command: SwitchAgent) -> ExecutionReached:
    """Switch to a configured agent."""
    at = Address(tenant, command.session_id)
    await load(context, at)
    check_agent(context.settings.config, command.agent)
    switched = switch_agent(ids.message_id(), command.agent)
    return reached(await change(context, at, lambda _session: (switched,)))
