"""`transfer.replay`: write the events of an import, by the rules of the core. Nobody is woken."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from fairlead_eventlog.errors import AppendConflict
from fairlead_ingest.command_context import APPEND_TRIES, CommandContext, ContextDep
from fairlead_ingest.replayed_sessions import ReplayedSession, read_stored, require_file
from fairlead_ingest.verbs.transfer.refusals import replay_conflict, unreadable_events
from fairlead_schema.commands.transfer import EventsReplayed, ReplayEvents
from fairlead_schema.errors import InvalidExport, ReplayConflict, ServiceUnavailable
from fairlead_schema.events import PromptAdmitted, ShellRequested
from fairlead_schema.ids import CommitId, MessageId, is_minted
from fairlead_schema.record import (
    ENDS_LOG,
    Commit,
    ImportMark,
    MalformedCommit,
    Recorded,
    RecordError,
    encode_import,
)
from fairlead_schema.subjects import Address
from fairlead_service.audit import audit_command
from fairlead_service.rpc.server import TenantParam
from fairlead_session.transfer.events import (
    StoredEvent,
    commit_events,
    decode_stored,
    named_session,
)
from fairlead_session.transfer.replay import (
    ReplayAccepted,
    ReplayOutcome,
    ReplayRefused,
    ReplaySkipped,
    ReplayTarget,
    judge_replay,
)


class ReplayBatch(NamedTuple):
    """The events of a batch, as they are stored and decoded. An event that stands twice counts once."""

    stored: list[StoredEvent]
    recorded: tuple[Recorded, ...]


async def replay(context: ContextDep, tenant: TenantParam, command: ReplayEvents) -> EventsReplayed:
    """Take the new events of a batch, all of them or none. An exact repeat changes nothing.

    Raises InvalidExport, ReplayConflict, SessionIsStored.
    """
    at = Address(tenant, command.session_id)
    batch = _decode_batch(command)
    assumed = context.replayed.assume(at)
    for _ in range(APPEND_TRIES):
        session = assumed or await context.replayed.load(at)
        if command.through > session.head.seq:
            require_file(
                at.session_id, session.marker, through=command.through, restores=command.restores
            )
        outcome = await _judge(context, at, session, command, batch)
        if assumed is not None:
            assumed = None
            if command.check or not isinstance(outcome, ReplayAccepted) or not outcome.new:
                # A decision not to write counts only if the leader has nothing newer.
                continue
        if isinstance(outcome, ReplayRefused):
            raise replay_conflict(at.session_id, outcome)
        if isinstance(outcome, ReplaySkipped):
            return _answer(session, command, skipped=True)
        if command.check:
            return _answer(session, command, accepted=len(outcome.new))
        try:
            await _write(
                context, at, session, command, batch.recorded[-len(outcome.new) :], outcome
            )
        except AppendConflict:
            context.replayed.forget(at)
            continue
        if outcome.claims and command.origin is not None and session.head.seq:
            await context.eventlog.origins.claim(at, command.origin)
        return _answer(session, command, accepted=len(outcome.new))
    raise ServiceUnavailable("The session is too busy to write to now", service="session.log")


async def _judge(
    context: CommandContext,
    at: Address,
    session: ReplayedSession,
    command: ReplayEvents,
    batch: ReplayBatch,
) -> ReplayOutcome:
    seq = session.head.seq
    repeated = [event["seq"] for event in batch.stored if event["seq"] <= seq]
    stored = (
        await read_stored(context.eventlog, at, first=min(repeated), last=max(repeated))
        if repeated
        else {}
    )
    # What is stored here was here before, whoever replays into it.
    is_asked = seq > 0 and command.restores is None
    origin = await context.eventlog.origins.find(at) if is_asked else None
    target = ReplayTarget(seq, origin, stored, session.event_ids)
    return judge_replay(target, batch.stored, origin=command.origin, strict=command.strict)


async def _write(
    context: CommandContext,
    at: Address,
    session: ReplayedSession,
    command: ReplayEvents,
    new: Sequence[Recorded],
    accepted: ReplayAccepted,
) -> None:
    """Append the new events as one commit. Raises AppendConflict if another writer was first."""
    if not accepted.new:
        return
    if command.restores is None:
        # The message ids of a stored session stay bound to it, as long as to any other session.
        await bind_message_ids(context, at, admitted_ids(new))
    id_, mark = commit_id(new[0]), ImportMark(command.through, command.publish)
    payload = encode_import(id_, accepted.new, mark)
    log = context.eventlog.log
    stored = await log.restore(at, Commit(id_, tuple(new)), payload, after=session.head)
    session.head = stored.head
    session.event_ids.update(event.id for event in new)
    context.replayed.keep(at, session)
    if session.head.seq == command.through:
        session.marker = None
        verb = "session.import" if command.restores is None else "session.restore"
        audit_command(verb, at.tenant, at.session_id)


def commit_id(first: Recorded) -> CommitId:
    """The id follows from the first event, so that a repeated batch is the same commit."""
    return f"cmt_{sha256(first.id.encode()).hexdigest()[:24]}"


def _answer(
    session: ReplayedSession, command: ReplayEvents, *, accepted: int = 0, skipped: bool = False
) -> EventsReplayed:
    return EventsReplayed(
        session_id=command.session_id, seq=session.head.seq, accepted=accepted, skipped=skipped
    )


def _decode_batch(command: ReplayEvents) -> ReplayBatch:
    """The events of one session, up to the end of the import at most. Raises InvalidExport."""
    session_id = command.session_id
    by_seq: dict[int, StoredEvent] = {}
    try:
        for commit in command.commits:
            for event in commit_events(commit):
                known = by_seq.setdefault(event["seq"], event)
                if known is not event and known != event:
                    raise MalformedCommit(f"two events have the seq {event['seq']}")
        stored = list(by_seq.values())
        recorded = decode_stored(stored, ImportMark(command.through, command.publish))
    except (RecordError, KeyError, TypeError) as error:
        raise unreadable_events(session_id, error) from error
    for each in recorded:
        seq, named = each.seq, named_session(each.event)
        if named not in {None, session_id}:
            reason = f"event {seq} names the session {named}"
            raise InvalidExport("OtherAggregate", reason, session_id=session_id, seq=seq)
        if type(each.event) in ENDS_LOG or not 0 < seq <= command.through:
            reason = f"event {seq} cannot be part of an import of {command.through} events"
            raise InvalidExport("Rule", reason, session_id=session_id, seq=seq)
    return ReplayBatch(stored, recorded)


def admitted_ids(events: Iterable[Recorded]) -> list[MessageId]:
    """The ids of callers among the admitted inputs. Minted ids need no register."""
    kinds = (PromptAdmitted, ShellRequested)
    admitted = (item.event for item in events if isinstance(item.event, kinds))
    return [event.message_id for event in admitted if not is_minted(event.message_id)]


async def require_free_ids(
    context: CommandContext, at: Address, message_ids: Sequence[MessageId]
) -> None:
    """Refuse message ids that another session of the tenant has. Raises ReplayConflict."""
    register = context.eventlog.message_ids
    bound = await asyncio.gather(*(register.find(at.tenant, id_) for id_ in message_ids))
    for id_, session_id in zip(message_ids, bound, strict=True):
        if session_id not in {None, at.session_id}:
            reason = f"the message id {id_} belongs to the session {session_id}"
            raise ReplayConflict("MessageIDInUse", reason, session_id=at.session_id)


async def bind_message_ids(
    context: CommandContext, at: Address, message_ids: Sequence[MessageId]
) -> None:
    """Bind the ids of callers to the session, before its events say that it admitted them."""
    await require_free_ids(context, at, message_ids)
    register = context.eventlog.message_ids
    await asyncio.gather(*(register.bind(at.tenant, id_, at.session_id) for id_ in message_ids))
