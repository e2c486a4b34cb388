"""Session logs on JetStream: one exact subject per session, one message per commit, CAS by sequence."""

from collections.abc import AsyncIterator
from typing import Final

from fairlead_eventlog.condition.log_room import LogRoom
from fairlead_eventlog.errors import CommitTooLarge, LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.jetstream.streams.patient_append import PATIENCE_S, PatientAppend
from fairlead_eventlog.jetstream.streams.session_tail import SessionTail
from fairlead_eventlog.ports import START, CommitPage, EntryPage, Head, LogEntry, StoredCommit
from fairlead_eventlog.replicas.patience import Patience
from fairlead_eventlog.status.log_status import LogStatusRegister, require_finalised, require_level
from fairlead_eventlog.streams import COMMIT_BYTES_MAX, log_stream
from fairlead_schema import subjects
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.record import (
    Commit,
    Draft,
    RecordError,
    claimed_seq,
    decode,
    encode,
    record,
)
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import add_checksum

# Reading this many events too many is cheaper than another step of the search.
LOCATE_SLACK: Final = 500
# How long a replica may lag behind a commit that the leader has, before a reader gives up.
LAG_S: Final = 10.0


class JetStreamLog:
    """Session logs. An acknowledged commit is on disk, in order, all of it or nothing."""

    def __init__(
        self, link: NatsLink, status: LogStatusRegister, *, append_patience_s: float = PATIENCE_S
    ) -> None:
        self._link = link
        self._status = status
        self._room = LogRoom(link)
        self._append = PatientAppend(link, self, append_patience_s)

    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        require_finalised(drafts, self._status.current.level)
        commit = Commit(commit_id, record(drafts, after=after.seq, by=by))
        payload = add_checksum(at, encode(commit))
        limit = min(COMMIT_BYTES_MAX, self._link.payload_bytes_max)
        if len(payload) > limit:
            raise CommitTooLarge(at, len(payload), limit)
        self._room.require(at, drafts, len(payload))
        return await self._append.append(at, commit, payload, after=after)

    async def restore(
        self, at: Address, commit: Commit, payload: bytes, *, after: Head
    ) -> StoredCommit:
        require_level(commit, self._status.current.level)
        payload = add_checksum(at, payload)
        limit = min(COMMIT_BYTES_MAX, self._link.payload_bytes_max)
        if len(payload) > limit:
            raise CommitTooLarge(at, len(payload), limit)
        self._room.require(at, (), len(payload))
        return await self._append.append(at, commit, payload, after=after)

    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        page = await self.read_entries(at, after=after.position, limit=limit, reach=reach)
        commits = _parse_readable(page.entries)
        return CommitPage(commits, page.more or len(commits) < len(page.entries))

    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        stream, patience = log_stream(subjects.shard(at.session_id)), Patience(LAG_S)
        while True:
            messages, remaining = await self._link.read_subject(
                stream, subjects.log(at), first=after + 1, batch=limit
            )
            if messages or after >= reach:
                entries = tuple(LogEntry(item.sequence, at, item.payload) for item in messages)
                return EntryPage(
                    entries, remaining > 0 or (bool(entries) and entries[-1].position < reach)
                )
            # The replica lags behind the leader, or the log has become shorter: it was erased.
            reach = min(reach, await self.last_commit_position(at))
            if after < reach and not await patience.pause():
                raise LogUnavailable(f"the replicas of {stream} lag behind position {reach}")

    async def head(self, at: Address) -> Head:
        stream = log_stream(subjects.shard(at.session_id))
        message = await self._link.last_message(stream, subjects.log(at))
        stored = None if message is None else _parse(message.sequence, message.payload)
        return START if stored is None or stored.is_purge else stored.head

    async def end(self, at: Address) -> Head:
        stream = log_stream(subjects.shard(at.session_id))
        message = await self._link.last_message(stream, subjects.log(at))
        if message is None:
            return START
        try:
            stored = _parse(message.sequence, message.payload)
        except RecordError:
            return Head(message.sequence, claimed_seq(message.payload))
        return START if stored.is_purge else stored.head

    async def locate(self, at: Address, seq: int) -> Head:
        """Binary search over positions, until reading on costs less than another step."""
        low, high = START, await self.head(at)
        if seq >= high.seq:
            return high
        while seq - low.seq > LOCATE_SLACK and high.position - low.position > 1:
            middle = (low.position + high.position) // 2
            page = await self.read(at, after=Head(middle, 0), limit=1)
            head = page.commits[0].head if page.commits else high
            if head.seq <= seq:
                low = head
            else:
                high = Head(middle, head.seq)
        return low

    async def last_commit_position(self, at: Address) -> int:
        stream = log_stream(subjects.shard(at.session_id))
        message = await self._link.last_message(stream, subjects.log(at))
        return 0 if message is None else message.sequence

    def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        return SessionTail(self._link, self, at).commits(after=after)

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        stream = log_stream(subjects.shard(at.session_id))
        await purge_subject(self._link, stream, subjects.log(at), before=before)


def _parse_readable(entries: tuple[LogEntry, ...]) -> tuple[StoredCommit, ...]:
    """The commits before the first unreadable one. Raises RecordError if that one is the first."""
    commits: list[StoredCommit] = []
    for entry in entries:
        try:
            commits.append(_parse(entry.position, entry.payload))
        except RecordError:
            if not commits:
                raise
            break
    return tuple(commits)


def _parse(position: int, payload: bytes) -> StoredCommit:
    return StoredCommit(position, decode(payload), len(payload))
