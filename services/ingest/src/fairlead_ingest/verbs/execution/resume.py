"""`session.resume`: run at least one turn, or join the one that runs."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_ingest.verbs.sessions import archived_error, change, sequence_answer
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands
from fairlead_session.execution.commands import SessionIsArchived


async def resume(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Write the request, and wake a runner."""
    at = Address(tenant, command.session_id)
    committed = await change(context, at, if_session_allowed(context, commands.resume))
    if isinstance(committed, SessionIsArchived):
        raise archived_error(committed.session_id)
    context.waker.wake(at)
    return sequence_answer(committed.session)
