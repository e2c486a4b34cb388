"""`session.agent`: later turns use another agent."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.create import check_agent
from fairlead_ingest.verbs.profile.restrictions import check_agent_allowed
from fairlead_ingest.verbs.sessions import change, load, sequence_answer
from fairlead_schema.commands.session import SeqReached, SwitchAgent
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import switch_agent


async def agent(context: ContextDep, tenant: TenantParam, command: SwitchAgent) -> SeqReached:
    """Switch to a configured agent."""
    at, message_id = Address(tenant, command.session_id), ids.message_id()
    await load(context, at)
    check_agent(context.settings.config, command.agent)
    check_agent_allowed(current_restrictions(), command.agent)
    committed = await change(
        context, at, lambda session: switch_agent(session, message_id, command.agent)
    )
    return sequence_answer(committed.session)
