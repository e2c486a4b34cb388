"""`session.fork`: a new session whose log is a marked copy of another one, up to a message."""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic_core import to_json

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.ports import Head
from fairlead_ingest.command_context import (
    APPEND_TRIES,
    CommandContext,
    Committed,
    ContextDep,
)
from fairlead_ingest.existing_session import check_in_log
from fairlead_ingest.quotas import quota_error
from fairlead_ingest.verbs.profile.restrictions import check_directory_allowed
from fairlead_ingest.verbs.sessions import change, describe, load
from fairlead_ingest.verbs.transfer.check import require_level
from fairlead_ingest.verbs.transfer.replay import admitted_ids, bind_message_ids, commit_id
from fairlead_schema.commands.session import ForkSession
from fairlead_schema.errors import Conflict, MessageNotFound, ServiceUnavailable
from fairlead_schema.record import Commit, ImportMark, encode_import
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.audit import audit_command
from fairlead_service.rpc.caller import current_caller, current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.execution.quota import CREATE_QUOTAS
from fairlead_session.transfer.events import StoredEvent, decode_stored, stored_events
from fairlead_session.transfer.fork import fork_events, leave_to_original

BATCH_BYTES: Final = 256 * 1024
"""Servers allow a megabyte by default, and the mark of an import comes on top."""


async def fork(context: ContextDep, tenant: TenantParam, command: ForkSession) -> SessionInfo:
    """Copy a session up to a message. A repeated fork with the same id goes on where it stopped.

    Nothing runs in the copy until somebody asks. Raises SessionNotFound, MessageNotFound, Conflict.
    """
    require_level(context)
    source, at = (
        Address(tenant, command.session_id),
        Address(tenant, command.id or ids.session_id()),
    )
    original = await load(context, source)
    if original.is_incomplete or source == at:
        raise Conflict("The session cannot be forked now", source.session_id)
    known = (await context.load_confirmed(at)).state
    check_in_log(known)
    if known.seq and known.profile is None:
        raise Conflict("The session was purged, and its id is used up", at.session_id)
    if known.seq and not await _is_copy(context, source, at):
        raise Conflict("The id belongs to another session: choose a new one", at.session_id)
    if known.seq and not known.is_incomplete:
        return await _finish(context, at)
    assert original.profile is not None, "the session exists"
    check_directory_allowed(current_restrictions(), original.profile.location.directory)
    if (reached := await context.quotas.find_reached_quota(tenant, CREATE_QUOTAS)) is not None:
        raise quota_error(reached)
    stored = await _stored_events(context, source, through=original.seq)
    events = fork_events(
        stored, source.session_id, at.session_id, message_id=command.message_id, by=current_caller()
    )
    if not events:
        assert command.message_id is not None, "a whole log has events"
        raise MessageNotFound(source.session_id, command.message_id)
    await _write(context, at, events)
    context.quotas.add(at, await load(context, at), "sessions")
    audit_command("session.fork", at.tenant, at.session_id)
    return await _finish(context, at)


async def _write(context: CommandContext, at: Address, events: Sequence[StoredEvent]) -> None:
    """Write the copied events that are missing, in batches. A crash leaves a prefix that nobody can use."""
    mark = ImportMark(events[-1]["seq"], publish=False)
    for _ in range(APPEND_TRIES):
        head = (await context.load_confirmed(at)).head
        try:
            for batch in _batches([event for event in events if event["seq"] > head.seq]):
                head = await _write_batch(context, at, batch, mark, head)
        except AppendConflict:
            context.forget(at)
            continue
        context.forget(at)
        return
    raise ServiceUnavailable("The session is too busy to write to now", service="session.log")


async def _write_batch(
    context: CommandContext,
    at: Address,
    batch: Sequence[StoredEvent],
    mark: ImportMark,
    head: Head,
) -> Head:
    recorded = decode_stored(batch, mark)
    await bind_message_ids(context, at, admitted_ids(recorded))
    id_ = commit_id(recorded[0])
    payload = encode_import(id_, batch, mark)
    return (await context.eventlog.log.restore(at, Commit(id_, recorded), payload, after=head)).head


def _batches(events: Sequence[StoredEvent]) -> Iterator[list[StoredEvent]]:
    batch: list[StoredEvent] = []
    size = 0
    for event in events:
        length = len(to_json(event))
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += length
    if batch:
        yield batch


async def _stored_events(
    context: CommandContext, at: Address, *, through: int
) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    async for entry in context.eventlog.shards.session_entries(at, after=0):
        # The seq 0 is that of a marker, which an earlier restore left.
        found += [event for event in stored_events(entry.payload) if 0 < event["seq"] <= through]
        if found and found[-1]["seq"] == through:
            break
    return found


async def _is_copy(context: CommandContext, source: Address, at: Address) -> bool:
    """Whether a session is a copy of this one, whose first caller perhaps died. Its first event tells."""
    first = await _stored_events(context, source, through=1)
    expected = fork_events(first, source.session_id, at.session_id)
    copied = await _stored_events(context, at, through=1)
    return [event["id"] for event in copied] == [event["id"] for event in expected]


async def _finish(context: CommandContext, at: Address) -> SessionInfo:
    """Leave to the original what waits or is open in the copy. A repeated fork does so if the first one died."""
    left: Committed = await change(context, at, leave_to_original)
    if left.events:
        context.waker.wake(at)
    return describe(context, await load(context, at))
