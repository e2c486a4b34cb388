"""`session.archive`: put a session away, once."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, maybe, reached
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands, switches
from fairlead_session.people.pending import close_asks
from fairlead_session.state.session import Session


async def archive(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> ExecutionReached:
    """Put it away; what is away already stays so."""
    at = Address(tenant, command.session_id)
    session = await change(context, at, _archived)
    if session.execution.interrupted:
        context.waker.attend(at)
    return reached(session)


def _archived(session: Session) -> tuple[SessionEvent, ...]:
    """Nobody answers what waits in a session that is away: that stops, and is answered."""
    archived = maybe(switches.archive(session))
    asks = close_asks(session)
    stopped = maybe(commands.interrupt(session)) if asks else ()
    return (*asks, *stopped, *archived) if archived else ()
