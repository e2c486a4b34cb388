"""`revert.stage`, `revert.clear` and `revert.commit`: go back to a message, return, or make it final.

A request is durable when it is answered. A runner stops the work and lets the tools service change
the files; the session then shows the staged revert, or why there is none.
"""

from fairlead_ingest.command_context import CommandContext, Committed, ContextDep, Events
from fairlead_ingest.verbs.profile.restrictions import if_session_allowed
from fairlead_ingest.verbs.sessions import archived_error, change, sequence_answer
from fairlead_schema.commands.revert import RevertReached, StageRevert
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import Conflict, MessageNotFound, RevertRefused
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.revert import commands
from fairlead_session.revert.commands import (
    BoundaryCompacted,
    BoundaryUnknown,
    ClearRefusal,
    RevertUnderWay,
    StageRefusal,
)
from fairlead_session.state.session import Session


async def stage(context: ContextDep, tenant: TenantParam, command: StageRevert) -> RevertReached:
    """Ask for a revert. Raises MessageNotFound, RevertRefused, Conflict."""
    at = Address(tenant, command.session_id)
    message_id, files, before = command.message_id, command.files, command.before

    def decide(session: Session) -> Events | StageRefusal:
        return commands.stage(session, message_id, files=files, before=before)

    decided: Committed | StageRefusal = await change(
        context, at, if_session_allowed(context, decide)
    )
    match decided:
        case SessionIsArchived():
            raise archived_error(at.session_id)
        case BoundaryUnknown():
            raise MessageNotFound(at.session_id, message_id)
        case BoundaryCompacted():
            reason = "A summary has replaced the message, so the session cannot go back to it"
            raise RevertRefused(reason, at.session_id)
        case RevertUnderWay():
            raise _under_way(at)
        case _:
            return await _ask_runner(context, at, decided)


async def clear(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> RevertReached:
    """Ask to undo the staged revert. Raises Conflict."""
    at = Address(tenant, command.session_id)
    decided: Committed | ClearRefusal = await change(
        context, at, if_session_allowed(context, commands.clear)
    )
    if isinstance(decided, SessionIsArchived):
        raise archived_error(at.session_id)
    if isinstance(decided, RevertUnderWay):
        raise _under_way(at)
    return await _ask_runner(context, at, decided)


async def commit(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Remove what came after the boundary, for ever. Raises Conflict."""
    at = Address(tenant, command.session_id)
    decided = await change(context, at, if_session_allowed(context, commands.commit))
    if isinstance(decided, RevertUnderWay):
        raise _under_way(at)
    return sequence_answer(decided.session)


async def _ask_runner(context: CommandContext, at: Address, committed: Committed) -> RevertReached:
    """Stop what runs, and wake a runner that serves the request."""
    session = committed.session
    request = session.revert.requested
    if request is not None:
        await context.nudge_owner(at, session)
        if session.execution.interrupted:
            context.waker.ensure_stop(at)
        context.waker.wake(at)
    seq = None if request is None else request.seq
    return RevertReached(session_id=session.id, seq=session.seq, request=seq)


def _under_way(at: Address) -> Conflict:
    return Conflict(
        "Another revert or move of the session is not done yet: try again", at.session_id
    )
