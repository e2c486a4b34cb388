"""`session.delete`: purge a session. It is gone at once; the projector then erases what it left."""

import logging

from fairlead_eventlog.errors import LogError
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.sessions import change, reached
from fairlead_schema.commands.session import ExecutionReached, SessionCommand
from fairlead_schema.errors import Refused, SessionNotFound
from fairlead_schema.events import SessionEvent, SessionPurged
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.people.pending import close_asks
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)


async def delete(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> ExecutionReached:
    """Write the last word (docs/adr/0012): every older owner and writer is fenced by it.

    Whoever is at work for it is told after that: nothing can be begun for it any more.
    """
    at = Address(tenant, command.session_id)
    before: Session | None = None

    def purge(session: Session) -> tuple[SessionEvent, ...]:
        nonlocal before
        before = session
        return (SessionPurged(),)

    # In a commit of its own: the last word stands alone.
    await change(context, at, close_asks)
    purged = await change(context, at, purge)
    assert before is not None, "the last word was decided from it"
    if before.execution.owner is not None:
        await context.eventlog.liveness.nudge(before.execution.owner.runner, at)
    for child in before.usage.children.uncounted:
        await _stop(context, tenant, child)
    return reached(purged)


async def _stop(context: CommandContext, tenant: TenantId, child: SessionId) -> None:
    """Interrupt a session below, which does the same to its own.

    What cannot be told now is stopped by the worker that looks after the call, a little later.
    """
    try:
        await interrupt(context, tenant, SessionCommand(session_id=child))
    except SessionNotFound:
        return  # It was never made: whoever makes it finds that nobody waits for it.
    except (LogError, RecordError, Refused) as error:
        log.warning("left below", extra={"session_id": child, "reason": str(error)})
