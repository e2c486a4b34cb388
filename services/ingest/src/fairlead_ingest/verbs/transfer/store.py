"""`session.store`: a file holds the whole session, so that its events leave the log (ADR 0084)."""

from functools import partial

from fairlead_eventlog.feed.progress import has_passed
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.verbs.sessions import change, sequence_answer
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.commands.transfer import StoreSession
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    ServiceUnavailable,
    SessionIsStored,
)
from fairlead_schema.events import SessionStored
from fairlead_schema.session_values.stored_file import StoredFile
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution import storage
from fairlead_session.execution.storage import StoreRefused


async def store(context: ContextDep, tenant: TenantParam, command: StoreSession) -> SeqReached:
    """Write the marker behind the last event of the file. The projector then erases what is before it.

    The same file a second time changes nothing. Raises SessionNotFound, SessionIsStored, Conflict,
    InvalidRequest before the level is finalised, and ServiceUnavailable until the feed has all events.
    """
    at = Address(tenant, command.session_id)
    _require_level(context)
    await _require_fed(context, at, command.file)
    try:
        outcome = await change(context, at, partial(storage.store, file=command.file))
    except SessionIsStored:
        # Perhaps by this very command: a gateway repeats a slow one at another ingest.
        session = (await context.load_confirmed(at)).state
        if session.stored is None or session.stored.file != command.file:
            raise
        return sequence_answer(session)
    if isinstance(outcome, StoreRefused):
        raise Conflict(f"The session cannot be stored, {outcome.reason}", at.session_id)
    audit_command("session.store", tenant, at.session_id)
    return sequence_answer(outcome.session)


async def _require_fed(context: CommandContext, at: Address, file: StoredFile) -> None:
    """The feed gets nothing that the log no longer has. Raises ServiceUnavailable until it has all."""
    known = await context.load_confirmed(at)
    is_end = known.head.seq == file.seq
    if not is_end or await has_passed(context.eventlog, at, known.head.position):
        return
    reason = (
        "The public feed has not passed the last events of the session so far, which takes a minute:"
        " try again, and see whether the projector runs"
    )
    raise ServiceUnavailable(reason, service="projector")


def _require_level(context: CommandContext) -> None:
    """A Conflict would say that no marker names the file, and another ingest may know a newer level."""
    level, needed = context.eventlog.status.current.level, SessionStored.level
    if level < needed:
        reason = (
            f"Stored sessions need level {needed} of the log's format, and {level} is finalised:"
            " run `fairlead provision --finalise` when no older release will run again"
        )
        raise InvalidRequest(reason, kind="Level")
