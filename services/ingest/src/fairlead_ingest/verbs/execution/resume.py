"""`session.resume`: run at least one turn, or join the one that runs."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, reached
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands
from fairlead_session.people.pending import withdraw_continue_question
from fairlead_session.state.session import Session


async def resume(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> ExecutionReached:
    """Ask for it durably, and for somebody to come."""
    at = Address(tenant, command.session_id)
    session = await change(context, at, _resumed)
    context.waker.wake(at)
    return reached(session)


def _resumed(session: Session) -> tuple[SessionEvent, ...]:
    """The resume is also the answer, should a person be asked whether to go on."""
    asked = commands.resume(session)
    return () if asked is None else (*withdraw_continue_question(session), asked)
