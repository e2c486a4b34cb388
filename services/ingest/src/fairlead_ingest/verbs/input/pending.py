"""`session.pending`: the input that is admitted and not promoted, and the commands that wait."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import load
from fairlead_schema.commands.input import PendingInputs
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.input import inbox


async def pending(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> PendingInputs:
    """The receipts of all pending input and commands, from the log."""
    session = await load(context, Address(tenant, command.session_id))
    return PendingInputs(
        inputs=inbox.pending_receipts(session), shells=inbox.pending_commands(session)
    )
