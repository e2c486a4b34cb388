"""`session.archive`: archive a session, once."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, sequence_answer
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands


async def archive(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Archive the session, and stop it if it waits for people."""
    at = Address(tenant, command.session_id)
    committed = await change(context, at, commands.archive)
    if committed.session.execution.interrupted:
        context.waker.ensure_stop(at)
    return sequence_answer(committed.session)
