"""`session.move`: work in another location from here on."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.destination import require_directory
from fairlead_ingest.verbs.profile.location import permitted_location
from fairlead_ingest.verbs.profile.restrictions import check_directory_allowed
from fairlead_ingest.verbs.sessions import change, load, sequence_answer
from fairlead_schema.commands.session import MoveSession, SeqReached
from fairlead_schema.errors import Conflict
from fairlead_schema.subjects import Address
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands


async def move(context: ContextDep, tenant: TenantParam, command: MoveSession) -> SeqReached:
    """Move the session, and stop the work at the old location. A runner settles that work."""
    at = Address(tenant, command.session_id)
    check_directory_allowed(current_restrictions(), command.location.directory)
    location = permitted_location(context.settings.config, tenant, command.location)
    await load(context, at)
    await require_directory(context, tenant, location)
    committed = await change(context, at, lambda session: commands.move(session, location))
    if isinstance(committed, commands.RevertOpen):
        raise Conflict("A revert is staged: commit or clear it before the move", at.session_id)
    if committed.session.execution.interrupted:
        context.waker.ensure_stop(at)
    return sequence_answer(committed.session)
