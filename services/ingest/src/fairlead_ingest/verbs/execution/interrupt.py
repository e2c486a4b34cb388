"""`session.interrupt`: stop the active drain, keep the inbox."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change
from fairlead_schema.commands.session import InterruptReached, SessionCommand
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands


async def interrupt(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> InterruptReached:
    """Write the interrupt, nudge the owner, and make sure that a runner honours the interrupt."""
    at = Address(tenant, command.session_id)
    committed = await change(context, at, commands.interrupt)
    session = committed.session
    outcome = commands.interrupt_outcome(session, committed.events)
    if outcome == "stopping":
        await context.nudge_owner(at, session)
        context.waker.ensure_stop(at)
    return InterruptReached(session_id=session.id, seq=session.seq, outcome=outcome)
