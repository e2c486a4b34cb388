"""`session.model`: later turns use another model."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.create import check_model
from fairlead_ingest.verbs.sessions import change, load, maybe, reached
from fairlead_schema.commands.session import ExecutionReached, SwitchModel
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.switches import switch_model


async def model(context: ContextDep, tenant: TenantParam, command: SwitchModel) -> ExecutionReached:
    """Switch to a configured model; the one in use already is nothing to write."""
    at, message_id = Address(tenant, command.session_id), ids.message_id()
    await load(context, at)
    check_model(context.settings.config, command.model)
    switch = command.model
    return reached(
        await change(context, at, lambda session: maybe(switch_model(session, message_id, switch)))
    )
