"""`session.interrupt`: stop the active drain, keep the inbox."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, maybe
from fairlead_schema.commands.session import InterruptReached, SessionCommand
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands
from fairlead_session.people.pending import close_asks
from fairlead_session.state.session import Session


async def interrupt(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> InterruptReached:
    """Ask for it durably, and see that it is honoured even when the owner is dead."""
    at = Address(tenant, command.session_id)
    wrote = False

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        nonlocal wrote
        asked = maybe(commands.interrupt(session))
        wrote = bool(asked)
        # What waits for people here is answered by it, too.
        return (*close_asks(session), *asked)

    session = await change(context, at, decide)
    if session.execution.interrupted and session.execution.owner is not None:
        await context.eventlog.liveness.nudge(session.execution.owner.runner, at)
    if session.execution.interrupted:
        context.waker.attend(at)
        return InterruptReached(session_id=session.id, seq=session.seq, outcome="stopping")
    # What waited for a runner, a timer or a budget had nothing open: it is at rest already.
    return InterruptReached(
        session_id=session.id, seq=session.seq, outcome="dropped" if wrote else "idle"
    )
