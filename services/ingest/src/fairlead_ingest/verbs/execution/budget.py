"""`session.budget`: limit what a session may use in all."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.profile.restrictions import bound_budget
from fairlead_ingest.verbs.sessions import change, sequence_answer
from fairlead_schema.commands.session import SeqReached, SetBudget
from fairlead_schema.subjects import Address
from fairlead_service.rpc.caller import current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import budget_lets_go_on, set_budget
from fairlead_session.state.usage import Budget


async def budget(context: ContextDep, tenant: TenantParam, command: SetBudget) -> SeqReached:
    """Set both limits. A raised limit wakes a session that rests because of the old limit."""
    at = Address(tenant, command.session_id)
    limits = bound_budget(current_restrictions(), Budget(command.cost, command.tokens))
    committed = await change(context, at, lambda session: set_budget(session, limits))
    if budget_lets_go_on(committed.before, limits):
        context.waker.wake(at)
    return sequence_answer(committed.session)
