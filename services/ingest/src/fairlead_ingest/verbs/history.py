"""`session.history`: the events of a session as clients read them, in pages."""

from typing import Any, Final

from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.replicas.commit_order import CommitOrder
from fairlead_eventlog.replicas.contiguity import decode_next
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.existing_session import check_in_log
from fairlead_schema.commands.history import HistoryRead, ReadHistory
from fairlead_schema.errors import (
    CursorExpired,
    InvalidCursor,
    SessionNotFound,
    SessionUnreadable,
    UnreadablePlace,
)
from fairlead_schema.events import PromptPromoted, Visibility
from fairlead_schema.ids import MessageId
from fairlead_schema.public_events import raw_event_json
from fairlead_schema.raw_records.long_event import fit_event
from fairlead_schema.raw_records.raw_commit import RawCommit, RawEvent
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.persistent import PersistentMap
from fairlead_session.state.inbox import AdmissionRecord

PAGE_BYTES: Final = 512 * 1024
EVENT_BYTES_MAX: Final = 960 * 1024
"""An event that is longer is cut: a message of NATS has at most a mebibyte."""
COMMITS_PER_READ: Final = 128
START_AGAIN: Final = "start again from the beginning, without a cursor"


async def read_history(
    context: ContextDep, tenant: TenantParam, command: ReadHistory
) -> HistoryRead:
    """A page of events. Raises SessionNotFound, SessionIsStored, CursorExpired, InvalidCursor."""
    at = Address(tenant, command.session_id)
    incarnation = context.eventlog.status.current.incarnation
    log_id = None if incarnation is None else incarnation.id
    if command.log is not None and log_id is not None and command.log != log_id:
        raise CursorExpired(f"The log was restored from a backup: {START_AGAIN}")
    end = await context.eventlog.log.end(at)
    if end == START:
        raise SessionNotFound(at.session_id)
    if end.seq == 0 or command.after > end.seq:
        # A stored session says so, also while its restore has not come to the cursor yet.
        check_in_log((await context.load_readable(at)).versioned.state)
    if command.after > end.seq:
        raise InvalidCursor(f"Cursor {command.after} is beyond the end, {end.seq}: {START_AGAIN}")
    page = _Page(context, at, command)
    unreadable: UnreadablePlace | None = None
    try:
        await page.fill(end)
    except SessionUnreadable as error:
        unreadable = error.place
    return HistoryRead(
        events=tuple(page.events),
        seq=page.seq,
        has_more=page.is_full,
        log=log_id,
        unreadable=unreadable,
    )


class _Page:
    """Takes events until there are enough of them, or enough bytes."""

    def __init__(self, context: CommandContext, at: Address, command: ReadHistory) -> None:
        self._context = context
        self._at = at
        self._limit = command.limit
        self._visible: frozenset[Visibility] = frozenset(
            ("public", "notice") if command.notices else ("public",)
        )
        self._admissions: PersistentMap[MessageId, AdmissionRecord] | None = None
        self._bytes = 0
        self.events: list[dict[str, Any]] = []
        self.seq = command.after
        self.is_full = False
        """Whether an event had no room."""

    async def fill(self, end: Head) -> None:
        """Read up to the end that the leader knows. Raises SessionUnreadable."""
        if self.seq >= end.seq:
            return
        log, at, ends = self._context.eventlog.log, self._at, self._context.page_ends
        start = START if self.seq == 0 else await ends.find(log, at, self.seq)
        order, more = CommitOrder(log, at, start), True
        whole = start
        try:
            while more:
                page = await log.read_entries(
                    at, after=whole.position, limit=COMMITS_PER_READ, reach=end.position
                )
                for entry in page.entries:
                    commit = await decode_next(order, entry)
                    if commit is not None and not await self._take(commit):
                        return
                    whole = Head(entry.position, order.head.seq)
                more = page.more
        except RecordError as error:
            raise SessionUnreadable(order.head.seq + 1, str(error)) from error
        finally:
            if whole != START:
                ends.note(at, self.seq, whole)

    async def _take(self, commit: RawCommit) -> bool:
        """Take the events of a commit. False: the page is full before its end."""
        for raw in commit.events:
            if raw.seq <= self.seq:
                continue
            if raw.kind.visibility in self._visible and not await self._has_room_for(raw):
                self.is_full = True
                return False
            self.seq = raw.seq
        return True

    async def _has_room_for(self, raw: RawEvent) -> bool:
        """Take an event if there is room for it. A page has room for at least one."""
        delivery = "steer"
        if raw.kind is PromptPromoted:
            delivery = await self._delivery(raw.data["messageID"])
        event = raw_event_json(self._at.session_id, raw, by=raw.by, delivery=delivery)
        shown, encoded = fit_event(event, EVENT_BYTES_MAX)
        self._bytes += len(encoded)
        if self.events and (len(self.events) == self._limit or self._bytes > PAGE_BYTES):
            return False
        self.events.append(shown)
        return True

    async def _delivery(self, message_id: MessageId) -> str:
        """How an input was delivered. The session remembers all its admissions."""
        if self._admissions is None:
            readable = await self._context.load_readable(self._at)
            self._admissions = readable.versioned.state.inbox.admissions
        known = self._admissions.get(message_id)
        return "steer" if known is None else known.delivery
