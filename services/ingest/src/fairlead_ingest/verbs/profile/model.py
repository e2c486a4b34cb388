"""`session.model`: later turns use another model."""

from fairlead_ingest.command_context import ContextDep, Events
from fairlead_ingest.verbs.profile.create import check_model
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_ingest.verbs.sessions import change, load, sequence_answer
from fairlead_schema.commands.session import SeqReached, SwitchModel
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import switch_model
from fairlead_session.state.session import Session


async def model(context: ContextDep, tenant: TenantParam, command: SwitchModel) -> SeqReached:
    """Switch to a configured model. The selected model again changes nothing."""
    at, message_id = Address(tenant, command.session_id), ids.message_id()
    await load(context, at)
    check_model(context.settings.config, command.model)

    def decide(session: Session) -> Events:
        return switch_model(session, message_id, command.model)

    committed = await change(context, at, if_session_allowed(context, decide))
    return sequence_answer(committed.session)
