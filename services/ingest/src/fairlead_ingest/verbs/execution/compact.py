"""`session.compact`: replace active history by a summary before the next turn."""

from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.sessions import change, maybe, reached
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_session.execution import commands


async def compact(
    desk: CommandContext, tenant: TenantId, command: SessionCommand
) -> ExecutionReached:
    """Ask for it durably, and for somebody to come."""
    at = Address(tenant, command.session_id)
    session = await change(desk, at, lambda found: maybe(commands.compact(found)))
    desk.waker.wake(at)
    return reached(session)
