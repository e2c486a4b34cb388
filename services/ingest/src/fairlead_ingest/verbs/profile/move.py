"""`session.move`: work in another location from here on, perhaps with the uncommitted changes."""

from fairlead_ingest.command_context import CommandDecider, Committed, ContextDep, Events
from fairlead_ingest.verbs.profile.destination import require_directory
from fairlead_ingest.verbs.profile.location import permitted_location
from fairlead_ingest.verbs.profile.restrictions import check_directory_allowed, if_session_allowed
from fairlead_ingest.verbs.sessions import archived_error, change, load
from fairlead_schema.commands.session import MoveReached, MoveSession
from fairlead_schema.errors import Conflict
from fairlead_schema.subjects import Address
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.relocation import commands
from fairlead_session.relocation.commands import MoveRefusal, MoveUnderWay, RevertOpen
from fairlead_session.state.session import Session


async def move(context: ContextDep, tenant: TenantParam, command: MoveSession) -> MoveReached:
    """Move the session, and stop the work at the old location. A runner settles that work.

    A move with changes is durable when it is answered. A runner lets the tools service transfer them.
    """
    at = Address(tenant, command.session_id)
    check_directory_allowed(current_restrictions(), command.location.directory)
    location = permitted_location(context.settings.config, tenant, command.location)
    await load(context, at)
    await require_directory(context, tenant, location)
    with_changes = command.move_changes is True

    def decide(session: Session) -> Events | MoveRefusal:
        return commands.move(session, location, with_changes=with_changes)

    # Changes are files of the old location, so the caller must be allowed to use that one too.
    allowed: CommandDecider[MoveRefusal] = decide
    if with_changes:
        allowed = if_session_allowed(context, decide)
    decided: Committed | MoveRefusal = await change(context, at, allowed)
    if isinstance(decided, SessionIsArchived):
        raise archived_error(at.session_id)
    if isinstance(decided, RevertOpen):
        raise Conflict("A revert is staged: commit or clear it before the move", at.session_id)
    if isinstance(decided, MoveUnderWay):
        raise Conflict("Another move of the session is not done yet: try again", at.session_id)
    session = decided.session
    request = session.relocation.requested
    if session.execution.interrupted:
        context.waker.ensure_stop(at)
    if request is not None:
        await context.nudge_owner(at, session)
        context.waker.wake(at)
    seq = None if request is None else request.seq
    return MoveReached(session_id=session.id, seq=session.seq, request=seq)
