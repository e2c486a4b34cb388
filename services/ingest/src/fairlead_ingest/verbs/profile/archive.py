"""`session.archive` and `session.unarchive`: take a session out of work, and back."""

from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.verbs.sessions import change, load, sequence_answer
from fairlead_schema.commands.session import SeqReached, SessionCommand
from fairlead_schema.errors import Conflict
from fairlead_schema.events import SessionUnarchived
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import commands


async def archive(context: ContextDep, tenant: TenantParam, command: SessionCommand) -> SeqReached:
    """Archive the session, and stop what runs or waits there."""
    at = Address(tenant, command.session_id)
    committed = await change(context, at, commands.archive)
    if committed.session.execution.interrupted:
        context.waker.ensure_stop(at)
    return sequence_answer(committed.session)


async def unarchive(
    context: ContextDep, tenant: TenantParam, command: SessionCommand
) -> SeqReached:
    """List the session again. What is in its inbox waits for a prompt or a resume."""
    at = Address(tenant, command.session_id)
    await load(context, at)
    if context.eventlog.status.current.level < SessionUnarchived.level:
        reason = (
            "Nobody can unarchive sessions before the upgrade is finalised:"
            " run `fairlead provision --finalise` when no older release will run again"
        )
        raise Conflict(reason, command.session_id)
    committed = await change(context, at, commands.unarchive)
    return sequence_answer(committed.session)
