"""What every command to a session that exists begins and ends with."""

from fairlead_ingest.command_context import CommandContext, Decide
from fairlead_schema.commands.session import ExecutionReached
from fairlead_schema.errors import SessionNotFound
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_session.state.session import Session


async def load(context: CommandContext, at: Address) -> Session:
    """The session as it is now. Raises SessionNotFound."""
    return _existing(await context.load(at))


async def change(context: CommandContext, at: Address, decide: Decide) -> Session:
    """Write what `decide` says of a session that exists. Raises SessionNotFound."""

    def decided(session: Session) -> tuple[SessionEvent, ...]:
        return decide(_existing(session))

    return await context.commit(at, decided)


def reached(session: Session) -> ExecutionReached:
    """What a command answers that has nothing else to tell."""
    return ExecutionReached(session_id=session.id, seq=session.seq)


def maybe(event: SessionEvent | None) -> tuple[SessionEvent, ...]:
    """One event to write, or nothing."""
    return () if event is None else (event,)


def _existing(session: Session) -> Session:
    if session.profile is None:
        raise SessionNotFound(session.id)
    return session
