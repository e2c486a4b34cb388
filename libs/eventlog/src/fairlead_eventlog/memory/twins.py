"""The in-memory twin: every port without a server, judged by the same contract suite."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, CommitTooLarge, LogUnavailable, Unanswered
from fairlead_eventlog.jetstream import approvals
from fairlead_eventlog.memory.commits import UnreadableCommit, opened, readable
from fairlead_eventlog.memory.work_queues import MemoryQueue, MemoryWakes, MemoryWork
from fairlead_eventlog.ports import (
    START,
    CommitPage,
    FeedItem,
    Head,
    Job,
    Life,
    LogEntry,
    OnNudge,
    Slots,
    Snapshot,
    StoredCommit,
    StoredOutput,
)
from fairlead_eventlog.streams import COMMIT_BYTES_MAX
from fairlead_schema import subjects
from fairlead_schema.delta import Delta
from fairlead_schema.ids import CommitId, MessageId, OutputId, SessionId, TenantId
from fairlead_schema.permission import SavedPermission
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import SHARDS, Address

Answerer: TypeAlias = Callable[[bytes], Awaitable[bytes]]

BATCH = 500
PIECE_BYTES = 64 * 1024


class MemoryLog:
    """Session logs and shards over lists of entries."""

    def __init__(self) -> None:
        self.entries: tuple[list[LogEntry], ...] = tuple([] for _ in range(SHARDS))
        self._sessions: defaultdict[Address, list[StoredCommit | UnreadableCommit]] = defaultdict(
            list
        )
        self._moved = asyncio.Condition()

    async def append(
        self, at: Address, commit_id: CommitId, drafts: tuple[Draft, ...], *, after: Head
    ) -> StoredCommit:
        commits = self._sessions[at]
        current = commits[-1].position if commits else 0
        if current != after.position:
            mine = (
                one
                for one in commits
                if isinstance(one, StoredCommit) and one.commit.id == commit_id
            )
            own = next(mine, None)
            if own is not None:
                return own
            raise AppendConflict(at, expected=after.position, actual=current)
        payload = encode(Commit(commit_id, record(drafts, after=after.seq)))
        if len(payload) > COMMIT_BYTES_MAX:
            raise CommitTooLarge(at, len(payload), COMMIT_BYTES_MAX)
        return readable(await self.plant(at, payload))

    async def plant(self, at: Address, payload: bytes) -> StoredCommit | UnreadableCommit:
        """Store bytes as they are, the way a foreign or newer writer might, readable or not."""
        entries = self.entries[subjects.shard(at.session_id)]
        entry = LogEntry(entries[-1].position + 1 if entries else 1, at, payload)
        entries.append(entry)
        planted = opened(entry)
        self._sessions[at].append(planted)
        async with self._moved:
            self._moved.notify_all()
        return planted

    async def read(self, at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        rest = [item for item in self._sessions[at] if item.position > after.position]
        strange = (i for i, item in enumerate(rest) if isinstance(item, UnreadableCommit))
        # What cannot be read is not hidden: whoever has read all before it is told.
        end = min(limit, next(strange, limit) or 1)
        return CommitPage(tuple(readable(item) for item in rest[:end]), len(rest) > end)

    async def locate(self, at: Address, seq: int) -> Head:
        heads = (
            item.head for item in reversed(self._sessions[at]) if isinstance(item, StoredCommit)
        )
        return next((head for head in heads if head.seq <= seq), START)

    async def head(self, at: Address) -> Head:
        commits = self._sessions[at]
        last = readable(commits[-1]) if commits else None
        return START if last is None or last.purges else last.head

    async def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        seen = await self.locate(at, after)
        while True:
            page = await self.read(at, after=seen)
            for stored in page.commits:
                seen = stored.head
                if seen.seq > after:
                    yield stored
            async with self._moved:
                if not (await self.read(at, after=seen, limit=1)).commits:
                    await self._moved.wait()

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        kept = [one for one in self._sessions[at] if before is not None and one.position >= before]
        positions = {one.position for one in kept}
        entries = self.entries[subjects.shard(at.session_id)]
        entries[:] = [one for one in entries if one.at != at or one.position in positions]
        self._sessions[at] = kept

    async def follow(
        self, shard: int, *, after: int, reader: str = "projector"
    ) -> AsyncIterator[Sequence[LogEntry]]:
        assert reader
        while True:
            batch = [entry for entry in self.entries[shard] if entry.position > after][:BATCH]
            if batch:
                after = batch[-1].position
                yield batch
                continue
            async with self._moved:
                if await self.end(shard) == after:
                    await self._moved.wait()

    async def end(self, shard: int) -> int:
        entries = self.entries[shard]
        return entries[-1].position if entries else 0


class MemorySnapshots:
    """Snapshots in a dictionary; clear it to prove that it is only a cache."""

    def __init__(self) -> None:
        self.kept: dict[Address, Snapshot] = {}

    async def load(self, at: Address) -> Snapshot | None:
        return self.kept.get(at)

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        self.kept[at] = snapshot

    async def drop(self, at: Address) -> None:
        self.kept.pop(at, None)


class MemoryMessages:
    """Message ids in a dictionary."""

    def __init__(self) -> None:
        self._bound: dict[tuple[TenantId, MessageId], SessionId] = {}

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        return self._bound.setdefault((tenant, message_id), session_id)


class MemoryRegistrations:
    """Registrations in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[tuple[TenantId, str], bytes] = {}

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        self.kept[tenant, key] = value

    async def drop(self, tenant: TenantId, key: str) -> None:
        self.kept.pop((tenant, key), None)

    async def of(self, tenant: TenantId) -> dict[str, bytes]:
        return {key: value for (whose, key), value in self.kept.items() if whose == tenant}


class MemorySources:
    """Registered sources in a dictionary."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, dict[str, bytes]] = defaultdict(dict)

    async def add(self, pool: str, key: str, body: bytes) -> bytes:
        return self._kept[pool].setdefault(key, body)

    async def remove(self, pool: str, key: str) -> None:
        self._kept[pool].pop(key, None)

    async def all(self, pool: str) -> dict[str, bytes]:
        return dict(sorted(self._kept[pool].items()))


class MemoryLiveness:
    """A set of who answers; pausing an instance makes it silent."""

    def __init__(self) -> None:
        self.alive: set[str] = set()
        self.paused: set[str] = set()
        self._on_nudge: dict[str, OnNudge] = {}

    async def answer(self, instance: str, on_nudge: OnNudge = lambda _at: None) -> None:
        self.alive.add(instance)
        self._on_nudge[instance] = on_nudge

    async def nudge(self, instance: str, at: Address) -> None:
        if instance in self._on_nudge:
            self._on_nudge[instance](at)

    async def ask(self, instance: str, *, timeout_s: float) -> Life:
        assert timeout_s > 0
        if instance not in self.alive:
            return "gone"
        return "silent" if instance in self.paused else "alive"


class MemoryTimers:
    """Timers that a test fires."""

    def __init__(self) -> None:
        self.set: dict[Address, int] = {}
        self._due = MemoryQueue()

    async def wake_at(self, at: Address, time_ms: int) -> None:
        self.set[at] = time_ms

    def fire(self, at: Address) -> None:
        """Let a session's time come."""
        del self.set[at]
        self._due.add(subjects.timer_due(at), b"")

    def due(self, slots: Slots) -> AsyncIterator[Job]:
        return self._due.take(slots)


class MemoryDeltas:
    """Live fragments over queues."""

    def __init__(self) -> None:
        self._listeners: defaultdict[Address, set[asyncio.Queue[Delta]]] = defaultdict(set)
        self.sent: list[tuple[Address, Delta]] = []

    async def send(self, at: Address, delta: Delta) -> None:
        self.sent.append((at, delta))
        for listener in self._listeners[at]:
            listener.put_nowait(delta)

    async def listen(self, at: Address) -> AsyncIterator[Delta]:
        heard: asyncio.Queue[Delta] = asyncio.Queue()
        self._listeners[at].add(heard)
        try:
            while True:
                yield await heard.get()
        finally:
            self._listeners[at].discard(heard)


class MemoryOutputs:
    """Managed outputs as bytes."""

    def __init__(self) -> None:
        self.kept: dict[tuple[TenantId, OutputId], tuple[bytes, str]] = {}
        self._sessions: dict[OutputId, Address] = {}

    async def put(
        self, at: Address, output_id: OutputId, pieces: AsyncIterator[bytes], *, mime: str
    ) -> StoredOutput:
        whole = b"".join([piece async for piece in pieces])
        self.kept[at.tenant, output_id] = (whole, mime)
        self._sessions[output_id] = at
        return StoredOutput(len(whole), mime)

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        found = self.kept.get((tenant, output_id))
        return None if found is None else StoredOutput(len(found[0]), found[1])

    async def get(
        self, tenant: TenantId, output_id: OutputId, *, first: int = 0
    ) -> AsyncIterator[bytes]:
        rest = self.kept.get((tenant, output_id), (b"", ""))[0][first:]
        for start in range(0, len(rest), PIECE_BYTES):
            yield rest[start : start + PIECE_BYTES]

    async def drop(self, at: Address) -> None:
        for output_id in [one for one, whose in self._sessions.items() if whose == at]:
            del self._sessions[output_id]
            self.kept.pop((at.tenant, output_id), None)


class MemoryRequests:
    """Requests answered by functions."""

    def __init__(self) -> None:
        self.answerers: dict[str, Answerer] = {}

    async def ask(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        if subject not in self.answerers:
            raise Unanswered(subject)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.answerers[subject](body)
        except TimeoutError as error:
            raise LogUnavailable(f"{subject} did not answer in {timeout_s} s") from error


class MemoryFeed:
    """The feed as a list, deduplicated by event id."""

    def __init__(self) -> None:
        self.items: dict[str, FeedItem] = {}
        self._checkpoints: dict[int, tuple[int, int]] = {}

    async def publish(self, items: Sequence[FeedItem]) -> None:
        for item in items:
            self.items.setdefault(item.event_id, item)

    async def close(self, at: Address, last: FeedItem) -> None:
        subject = subjects.event(at, "")
        for event_id in [id_ for id_, one in self.items.items() if one.subject.startswith(subject)]:
            del self.items[event_id]
        await self.publish([last])

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        return self._checkpoints.get(shard, (0, 0))

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        _, current = await self.checkpoint(shard)
        if current != revision:
            at = Address("feed", f"shard-{shard}")
            raise AppendConflict(at, expected=revision, actual=current)
        self._checkpoints[shard] = (position, current + 1)
        return current + 1


class MemoryDeadLetters:
    """Buried messages, in order."""

    def __init__(self) -> None:
        self.buried: list[tuple[str, str, bytes, str]] = []

    async def bury(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        self.buried.append((source, subject, payload, reason))


class MemoryApprovals:
    """Approvals in lists by project."""

    def __init__(self) -> None:
        self._projects: dict[tuple[TenantId, str], tuple[SavedPermission, ...]] = {}
        self._revision = 0

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        known = await self.saved(tenant, project_id)
        self._projects[tenant, project_id] = approvals.added(known, project_id, action, resources)
        self._revision += 1

    async def saved(self, tenant: TenantId, project_id: str) -> tuple[SavedPermission, ...]:
        return self._projects.get((tenant, project_id), ())

    async def remove(self, tenant: TenantId, id_: str) -> None:
        for (owner, project_id), known in self._projects.items():
            if owner == tenant:
                kept = tuple(one for one in known if one.id != id_)
                self._projects[owner, project_id] = kept
        self._revision += 1

    async def revision(self) -> int:
        return self._revision


def memory() -> EventLog:
    """Every port, in memory."""
    log = MemoryLog()
    return EventLog(
        log=log,
        shards=log,
        wakes=MemoryWakes(),
        work=MemoryWork(),
        timers=MemoryTimers(),
        liveness=MemoryLiveness(),
        snapshots=MemorySnapshots(),
        messages=MemoryMessages(),
        registrations=MemoryRegistrations(),
        sources=MemorySources(),
        deltas=MemoryDeltas(),
        outputs=MemoryOutputs(),
        requests=MemoryRequests(),
        feed=MemoryFeed(),
        dead=MemoryDeadLetters(),
        approvals=MemoryApprovals(),
        complaint=lambda: None,
    )
