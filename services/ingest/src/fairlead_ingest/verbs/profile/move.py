"""`session.move`: work in another location from here on."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.location import check_location
from fairlead_ingest.verbs.sessions import change, reached
from fairlead_schema.commands.session import ExecutionReached, MoveSession
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.switches import move as decide_move


async def move(context: ContextDep, tenant: TenantParam, command: MoveSession) -> ExecutionReached:
    """Move, and stop what runs at the old place; somebody comes to settle it."""
    at = Address(tenant, command.session_id)
    check_location(context.settings.config.location.roots, command.location)
    session = await change(context, at, lambda found: decide_move(found, command.location))
    if session.execution.interrupted:
        context.waker.attend(at)
    return reached(session)
