"""`session.delete`: purge a session. It is gone at once; the projector then erases its data."""

import logging

from fairlead_eventlog.errors import LogError
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.unreadable_purge import purge_unreadable
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.sessions import change, load
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import Refused, SessionIsStored, SessionNotFound
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.commands import purge
from fairlead_session.people.pending import close_asks
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)


async def delete(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Write the last event (docs/adr/0012), which fences every owner and writer.

    After that the owner stops, and child sessions that began meanwhile. The others stop before, because
    nobody would find them if this process died in between.
    """
    at = Address(tenant, command.session_id)
    try:
        await _interrupt_children(context, tenant, await context.load(at))
        before, seq = await _purge_readable(context, at)
    except (RecordError, SessionNotFound, SessionIsStored) as error:
        # Of a log that cannot be read nobody knows whether it has a session. It is purged too, and
        # so is a stored session: the last word stands behind its marker.
        before, seq = await purge_unreadable(context, at, reason=str(error))
    audit_command("session.purge", tenant, at.session_id)
    await context.nudge_owner(at, before)
    await _interrupt_children(context, tenant, before)
    return SeqReached(session_id=at.session_id, seq=seq)


async def _purge_readable(context: CommandContext, at: Address) -> tuple[Session, int]:
    """Purge by a decision from the whole log: the session before it, and the seq of its last event."""
    # The asks close in a commit of their own, because the last event stands alone.
    if not (await load(context, at)).is_incomplete:
        await change(context, at, close_asks)
    committed = await change(context, at, purge)
    return committed.before, committed.session.seq


async def _interrupt_children(context: CommandContext, tenant: TenantId, session: Session) -> None:
    for child in session.usage.children.uncounted:
        await _interrupt_child(context, tenant, child)


async def _interrupt_child(context: CommandContext, tenant: TenantId, child: SessionId) -> None:
    """Interrupt a child session, which interrupts its own children."""
    try:
        await interrupt(context, tenant, SessionCommand(session_id=child))
    except SessionNotFound:
        return  # No worker has created the child, and the worker that does so will stop it.
    except (LogError, RecordError, Refused) as error:
        log.warning(
            "child session not interrupted: it works until it rests by itself",
            extra={"session_id": child, "reason": str(error)},
        )
