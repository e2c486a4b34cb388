"""`session.budget`: limit what a session may use in all."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, maybe, reached
from fairlead_schema.commands.session import ExecutionReached, SetBudget
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import set_budget
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget


async def budget(context: ContextDep, tenant: TenantParam, command: SetBudget) -> ExecutionReached:
    """Set both limits; a raised one lets a session go on that rested over it."""
    at, limits = Address(tenant, command.session_id), Budget(command.cost, command.tokens)
    raised = False

    def decide(session: Session) -> tuple[SessionEvent, ...]:
        nonlocal raised
        raised = limits.exceeds(session.usage.budget)
        return maybe(set_budget(session, limits))

    session = await change(context, at, decide)
    if raised and session.execution.rested == "over-budget":
        context.waker.wake(at)
    return reached(session)
