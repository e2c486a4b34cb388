"""Commands to a session that exists: load the session, change it, and answer with its sequence."""

from fairlead_ingest.command_context import (
    CommandContext,
    CommandDecider,
    Committed,
    Events,
    Refusal,
)
from fairlead_ingest.existing_session import check_exists
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.errors import Conflict
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_session.info import client_session, info
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session


async def load(context: CommandContext, at: Address) -> Session:
    """The session as it is now. Raises SessionNotFound, SessionIsStored."""
    return check_exists(await context.load(at))


async def change(
    context: CommandContext,
    at: Address,
    decide: CommandDecider[Refusal],
    *,
    by: PrincipalName | None = None,
) -> Committed | Refusal:
    """Write what `decide` returns for a session that exists. Raises SessionNotFound, SessionIsStored.

    `by` stands in the commit if the request names no principal.
    """

    def decide_existing(session: Session) -> Events | Refusal:
        return decide(check_exists(session))

    return await context.commit(at, decide_existing, by=by)


async def inform_runner(context: CommandContext, at: Address, session: Session) -> None:
    """Nudge the owner, and bring a runner if the session has to stop or has work."""
    await context.nudge_owner(at, session)
    if session.execution.interrupted:
        context.waker.ensure_stop(at)
    elif is_moving(session):
        context.waker.wake(at)


def archived_error(session_id: SessionId) -> Conflict:
    """The refusal of a command that would let an archived session work."""
    return Conflict("The session is archived: unarchive it first", session_id)


def describe(context: CommandContext, session: Session) -> SessionInfo:
    """A session for readers, with the agent and the model of its next turn if it names none."""
    return client_session(context.settings.config.with_defaults(info(session)))


def sequence_answer(session: Session) -> SeqReached:
    """The answer of a command without a result: the last sequence of the session."""
    return SeqReached(session_id=session.id, seq=session.seq)
