"""`session.compact`: replace active history by a summary before the next turn."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, maybe, reached
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands


async def compact(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> ExecutionReached:
    """Ask for it durably, and for somebody to come."""
    at = Address(tenant, command.session_id)
    session = await change(context, at, lambda found: maybe(commands.compact(found)))
    context.waker.wake(at)
    return reached(session)
