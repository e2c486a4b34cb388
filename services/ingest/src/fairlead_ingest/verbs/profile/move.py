"""`session.move`: work in another location or pool from here on, perhaps with the uncommitted changes."""

from fairlead_ingest.command_context import (
    CommandContext,
    CommandDecider,
    Committed,
    ContextDep,
    Events,
)
from fairlead_ingest.verbs.profile.destination import require_directory
from fairlead_ingest.verbs.profile.location import permitted_location
from fairlead_ingest.verbs.profile.pool import pool_of_moved_session, serving_pool
from fairlead_ingest.verbs.profile.restrictions import check_directory_allowed, if_session_allowed
from fairlead_ingest.verbs.sessions import archived_error, change, load
from fairlead_schema.commands.session import MoveReached, MoveSession
from fairlead_schema.errors import Conflict
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.relocation import commands
from fairlead_session.relocation.commands import MoveRefusal, MoveUnderWay, OtherPool, RevertOpen
from fairlead_session.state.session import Session


async def move(context: ContextDep, tenant: TenantParam, command: MoveSession) -> MoveReached:
    """Move the session, and stop the work at the old location. A runner settles that work.

    A move with changes is durable when it is answered. A runner lets the tools service transfer them.
    """
    at = Address(tenant, command.session_id)
    with_changes = command.move_changes is True
    await _require_destination(context, at, command)

    def decide(session: Session) -> Events | MoveRefusal:
        location = _location(context, tenant, command, session)
        pool = pool_of_moved_session(context, tenant, session, location, command.pool)
        return commands.move(
            session,
            location,
            pool=pool,
            with_changes=with_changes,
            at_rest=command.at_rest is True,
            resume=command.resume is True,
        )

    # Changes are files of the old location, so the caller must be allowed to use that one too.
    allowed: CommandDecider[MoveRefusal] = decide
    if with_changes or command.location is None:
        allowed = if_session_allowed(context, decide)
    decided: Committed | MoveRefusal = await change(context, at, allowed)
    if not isinstance(decided, Committed):
        raise _refusal(at, decided)
    session = decided.session
    request = session.relocation.requested
    if session.execution.interrupted:
        context.waker.ensure_stop(at)
    if request is not None:
        await context.nudge_owner(at, session)
    if request is not None or command.resume:
        context.waker.wake(at)
    seq = None if request is None else request.seq
    return MoveReached(session_id=session.id, seq=session.seq, request=seq)


async def _require_destination(context: CommandContext, at: Address, command: MoveSession) -> None:
    """Refuse a destination before anything is written. Raises InvalidRequest, Forbidden."""
    session = await load(context, at)
    if command.location is not None:
        check_directory_allowed(current_restrictions(), command.location.directory)
    location = _location(context, at.tenant, command, session)
    pool = pool_of_moved_session(context, at.tenant, session, location, command.pool)
    await require_directory(context, at.tenant, location, serving_pool(context, pool))


def _location(
    context: CommandContext, tenant: TenantId, command: MoveSession, session: Session
) -> LocationRef:
    """The location after the move. Without a new one the session stays where it is."""
    assert session.profile is not None, "only an existing session moves"
    if command.location is None:
        return session.profile.location
    return permitted_location(context.settings.config, tenant, command.location)


def _refusal(at: Address, refused: MoveRefusal) -> Conflict:
    match refused:
        case SessionIsArchived():
            return archived_error(at.session_id)
        case RevertOpen():
            reason = "A revert is staged: commit or clear it before the move"
        case MoveUnderWay():
            reason = "Another move of the session is not done yet: try again"
        case OtherPool():
            reason = (
                "The destination belongs to another pool, whose workers do not see the files: commit and"
                " push the changes, then move without them"
            )
        case _:
            reason = "The session works now: try again when it rests, or move it without `atRest`"
    return Conflict(reason, at.session_id)
