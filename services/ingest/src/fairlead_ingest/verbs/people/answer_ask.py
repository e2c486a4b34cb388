"""Writes what a person answered, and has whoever should go on with it know."""

from fairlead_ingest.command_context import CommandContext, Decide
from fairlead_ingest.verbs.sessions import change
from fairlead_schema.subjects import Address
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session


async def answer_with(context: CommandContext, at: Address, decide: Decide) -> Session:
    """One commit, then a nudge for its owner and a wake if nobody is at it.

    Said again it wakes again: who said it first may have died before the wake.
    """
    session = await change(context, at, decide)
    if session.execution.owner is not None:
        await context.eventlog.liveness.nudge(session.execution.owner.runner, at)
    if session.execution.interrupted:
        context.waker.attend(at)
    elif is_moving(session):
        context.waker.wake(at)
    return session
