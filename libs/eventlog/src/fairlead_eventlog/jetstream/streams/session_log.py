"""Session logs on JetStream: one exact subject per session, one message per commit, CAS by sequence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from nats.aio.msg import Msg

from fairlead_eventlog.condition.log_room import LogRoom
from fairlead_eventlog.errors import AppendConflict, CommitTooLarge, LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    StoredMessage,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.ports import START, CommitPage, Head, StoredCommit
from fairlead_eventlog.status.log_status import LogStatusRegister, require_finalised
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

APPEND_TRIES: Final = 3
# Reading this many events too many is cheaper than another step of the search.
LOCATE_SLACK: Final = 500
TAIL_BUFFER: Final = 256
# A quiet tail reads the log this often, in case a broadcast was lost.
TAIL_LOOK_S: Final = 30.0


class JetStreamLog:
    """Session logs. An acknowledged commit is on disk, in order, all of it or nothing."""

    def __init__(self, link: NatsLink, status: LogStatusRegister) -> None:
        self._link = link
        self._status = status
        self._room = LogRoom(link)

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
        payload = encode(commit)
        limit = min(COMMIT_BYTES_MAX, self._link.payload_bytes_max)
        if len(payload) > limit:
            raise CommitTooLarge(at, len(payload), limit)
        self._room.require(at, drafts, len(payload))
        headers = {EXPECTED_LAST: str(after.position)}
        for attempt in range(APPEND_TRIES):
            try:
                position = await self._link.store(subjects.log(at), payload, headers=headers)
                return StoredCommit(position, commit)
            except ServerRefusal as refusal:
                return await self._resolve_refusal(at, commit, after, refusal)
            except (NoAnswer, NoResponders):
                # The outcome is unknown; the same commit at the same place is safe to repeat.
                await asyncio.sleep(0.1 * (attempt + 1))
        raise LogUnavailable(f"no acknowledgement for {commit_id}")

    async def read(self, at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        stream = log_stream(subjects.shard(at.session_id))
        messages, remaining = await self._link.read_subject(
            stream, subjects.log(at), first=after.position + 1, batch=limit
        )
        commits = _parse_readable(messages)
        return CommitPage(commits, remaining > 0 or len(commits) < len(messages))

    async def head(self, at: Address) -> Head:
        stream = log_stream(subjects.shard(at.session_id))
        message = await self._link.last_message(stream, subjects.log(at))
        stored = None if message is None else _parse(message)
        return START if stored is None or stored.is_purge else stored.head

    async def end(self, at: Address) -> Head:
        stream = log_stream(subjects.shard(at.session_id))
        message = await self._link.last_message(stream, subjects.log(at))
        if message is None:
            return START
        try:
            stored = _parse(message)
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

    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        broadcasts: asyncio.Queue[Msg | None] = asyncio.Queue(TAIL_BUFFER)

        async def receive(msg: Msg) -> None:
            # A full buffer drops the broadcast. The next one shows the gap, and the log fills it.
            with suppress(asyncio.QueueFull):
                broadcasts.put_nowait(msg)

        def read_again() -> None:
            with suppress(asyncio.QueueFull):
                broadcasts.put_nowait(None)

        subscription = await self._link.client.subscribe(subjects.commit(at), cb=receive)
        unregister = self._link.on_reconnect(read_again)
        try:
            head = await self.locate(at, after)
            async for stored in self._read_rest(at, head):
                head = stored.head
                if head.seq > after:
                    yield stored
            while True:
                async for stored in self._commits_of(at, head, await _next(broadcasts)):
                    head = stored.head
                    yield stored
        finally:
            unregister()
            with suppress(Exception):
                await subscription.unsubscribe()

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        stream = log_stream(subjects.shard(at.session_id))
        await purge_subject(self._link, stream, subjects.log(at), before=before)

    async def _commits_of(
        self, at: Address, head: Head, msg: Msg | None
    ) -> AsyncIterator[StoredCommit]:
        """The commit of a broadcast; all commits since `head` if an earlier broadcast was missed."""
        if msg is not None and _position(msg) <= head.position:
            return
        if msg is not None and _previous(msg) == head.position:
            yield StoredCommit(_position(msg), decode(msg.data))
            return
        async for stored in self._read_rest(at, head):
            yield stored

    async def _read_rest(self, at: Address, head: Head) -> AsyncIterator[StoredCommit]:
        more = True
        while more:
            page = await self.read(at, after=head)
            for stored in page.commits:
                yield stored
                head = stored.head
            more = page.more

    async def _resolve_refusal(
        self, at: Address, commit: Commit, after: Head, refusal: ServerRefusal
    ) -> StoredCommit:
        """Tell a lost race from our own commit whose acknowledgement was lost."""
        if refusal.code not in WRONG_LAST_SEQUENCE:
            raise stream_error(refusal, log_stream(subjects.shard(at.session_id))) from refusal
        async for stored in self._read_rest(at, after):
            if stored.commit.id == commit.id:
                return stored
        digits = refusal.description.rpartition(" ")[2]
        actual = int(digits) if digits.isdigit() else None
        raise AppendConflict(at, expected=after.position, actual=actual) from refusal


async def _next(broadcasts: asyncio.Queue[Msg | None]) -> Msg | None:
    # Not wait_for: on Python 3.11 it can swallow a cancellation.
    try:
        async with asyncio.timeout(TAIL_LOOK_S):
            return await broadcasts.get()
    except TimeoutError:
        return None


def _parse_readable(messages: list[StoredMessage]) -> tuple[StoredCommit, ...]:
    """The commits before the first unreadable one. Raises RecordError if that one is the first."""
    commits: list[StoredCommit] = []
    for message in messages:
        try:
            commits.append(_parse(message))
        except RecordError:
            if not commits:
                raise
            break
    return tuple(commits)


def _parse(message: StoredMessage) -> StoredCommit:
    return StoredCommit(message.sequence, decode(message.payload))


def _position(msg: Msg) -> int:
    return int((msg.headers or {})["Nats-Sequence"])


def _previous(msg: Msg) -> int:
    return int((msg.headers or {})["Nats-Last-Sequence"])
