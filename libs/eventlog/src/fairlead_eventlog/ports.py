"""What Fairlead asks of a log, in its own words. Two things implement it: JetStream and a twin."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias

from fairlead_eventlog.slots import Slots
from fairlead_schema.delta import Delta
from fairlead_schema.events import SessionPurged
from fairlead_schema.ids import CommitId, MessageId, OutputId, SessionId, TenantId
from fairlead_schema.permission import SavedPermission
from fairlead_schema.record import Commit, Draft
from fairlead_schema.subjects import Address


class Head(NamedTuple):
    """How far a session has come: the log's position of its last commit, its last event's seq."""

    position: int
    seq: int


START = Head(0, 0)


class StoredCommit(NamedTuple):
    """A commit and where the log keeps it."""

    position: int
    commit: Commit

    @property
    def head(self) -> Head:
        return Head(self.position, self.commit.events[-1].seq)

    @property
    def is_purge(self) -> bool:
        """Whether this is the last word of a session: nothing before it exists any more."""
        return isinstance(self.commit.events[-1].event, SessionPurged)


class CommitPage(NamedTuple):
    """Some commits in order, and whether the log has more after them."""

    commits: tuple[StoredCommit, ...]
    more: bool


class SessionLog(Protocol):
    """One ordered log per session."""

    async def append(
        self, at: Address, commit_id: CommitId, drafts: tuple[Draft, ...], *, after: Head
    ) -> StoredCommit:
        """Commit all drafts if the session is still at `after`.

        Raises AppendConflict, CommitTooLarge, LogUnavailable. A repeated commit id that already
        landed is answered with what it stored.
        """
        ...

    async def read(self, at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        """The commits after a head that was seen before, oldest first.

        A page ends before a commit that cannot be read; the next one raises RecordError.
        """
        ...

    async def locate(self, at: Address, seq: int) -> Head:
        """A head at or before event `seq`, from which reading reaches the event after it."""
        ...

    async def head(self, at: Address) -> Head:
        """The last commit's head, from the leader.

        START for a session that does not exist: it was never written, or it was purged.
        Raises RecordError if it cannot be read.
        """
        ...

    def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        """Every commit holding events after seq `after`, then new ones as they land, for ever."""
        ...

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        """Forget a session's commits before a position; without one, every commit."""
        ...


class LogEntry(NamedTuple):
    """One message of a shard, still encoded: a poison one must not stop its reader."""

    position: int
    at: Address
    payload: bytes


class ShardLog(Protocol):
    """A whole shard in order, for projections."""

    def follow(
        self, shard: int, *, after: int, reader: str = "projector"
    ) -> AsyncIterator[Sequence[LogEntry]]:
        """Batches of entries after a position, then new ones as they land, for ever.

        One process follows a shard under one reader's name; a second one ends the first.
        """
        ...

    async def last_position(self, shard: int) -> int:
        """The position of the shard's last message, 0 when empty."""
        ...


class Job(Protocol):
    """One delivery of a message of a work queue. The job occupies a slot until it is released.

    `async with job:` releases it at the end of the block, also after an exception.
    """

    @property
    def subject(self) -> str: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def sequence(self) -> int:
        """The message's own place in its queue: the same at every delivery."""
        ...

    @property
    def deliveries(self) -> int: ...

    async def extend(self) -> None:
        """Keep the message for another deadline."""
        ...

    async def ack(self) -> None:
        """Remove the message from its queue, and wait until the server has confirmed it."""
        ...

    async def retry_later(self, delay_s: float) -> None:
        """Put the message back; any worker gets it again after the delay."""
        ...

    def release(self) -> None:
        """Free the slot. An unacknowledged message comes again later. A second call does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_exception: object) -> None: ...


class Wakes(Protocol):
    """Advisory hints that durable work may exist; at most one per session."""

    async def wake(self, at: Address) -> bool:
        """Leave a wake. False: one is already there, which is as good. Raises LogUnavailable."""
        ...

    async def renew(self, at: Address) -> bool:
        """Leave a wake in the place of the one that is there. Raises LogUnavailable.

        A server that was killed may remember a wake and forget that nobody was given it yet, or
        that it was done with: such a one is never delivered, and refuses every other. False: the
        one that is there only waits for its turn behind others, and keeps its place.
        """
        ...

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        """Wakes for this process, as they come. Not exclusive: the log fences, not the token."""
        ...


class Timers(Protocol):
    """Durable timers, one per session."""

    async def wake_at(self, at: Address, time_ms: int) -> None:
        """Have the session woken at a time; a later call replaces an earlier one."""
        ...

    def take_due(self, slots: Slots) -> AsyncIterator[Job]:
        """Sessions whose time has come, for whoever wakes them."""
        ...


class WorkQueue(Protocol):
    """Work that exactly one of several workers should do."""

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        """Leave work durably; the same `once` within the stream's window is stored once."""
        ...

    def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        """Jobs for this process, as they come; a job whose deadline passes goes to another."""
        ...


PingResult: TypeAlias = Literal["alive", "gone", "silent"]


OnNudge: TypeAlias = Callable[[Address], None]
"""Is told that a session has news for whoever works on it."""


class Liveness(Protocol):
    """Who is alive. Decides when to try a take-over, never whether it is allowed."""

    async def answer_pings(self, instance: str, on_nudge: OnNudge = lambda _at: None) -> None:
        """Answer pings for this instance from now on, and hear nudges."""
        ...

    async def nudge(self, instance: str, at: Address) -> None:
        """Tell an instance to look at a session's log again. A hint: it may be lost."""
        ...

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        """`gone` when nobody listens there; `silent` when it listens but does not answer."""
        ...


class Snapshot(NamedTuple):
    """A folded state and the head it belongs to."""

    head: Head
    state: bytes


class Snapshots(Protocol):
    """Folded states as a cache: any may be dropped at any time."""

    async def load(self, at: Address) -> Snapshot | None:
        """The last stored snapshot, if there is one."""
        ...

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        """Replace the snapshot. One that does not fit is dropped silently: it is a cache."""
        ...

    async def remove(self, at: Address) -> None:
        """Forget the snapshot."""
        ...


class MessageRegister(Protocol):
    """Binds a message id to the one session of its tenant that may use it."""

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        """Bind the id, or find who has it: the answer is the session it belongs to."""
        ...


class SourceRegister(Protocol):
    """Keeps what services registered as context sources, each key once per pool."""

    async def add(self, pool: str, key: str, body: bytes) -> bytes:
        """Keep it under its key, or find what is there: the answer is what is kept."""
        ...

    async def remove(self, pool: str, key: str) -> None:
        """Forget a key."""
        ...

    async def get_all(self, pool: str) -> dict[str, bytes]:
        """Everything that is kept, in key order."""
        ...


class Deltas(Protocol):
    """Live fragments of a session; nothing is kept."""

    async def send(self, at: Address, delta: Delta) -> None:
        """Broadcast one fragment."""
        ...

    def listen(self, at: Address) -> AsyncIterator[Delta]:
        """Fragments from now on; subscribed once the iterator is first awaited."""
        ...


class StoredOutput(NamedTuple):
    """A managed output: how long it is and what it is."""

    bytes: int
    mime: str


class OutputStore(Protocol):
    """Managed outputs: complete results that are too long for a log, kept for some days."""

    async def put(
        self, at: Address, output_id: OutputId, pieces: AsyncIterator[bytes], *, mime: str
    ) -> StoredOutput:
        """Keep an output of a session, in whatever pieces it comes. It is there once this returns.

        Raises LogUnavailable, StreamMissing; then nobody ever reads a part of it.
        """
        ...

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        """What is kept under an id of this tenant; None if nothing is, or no longer."""
        ...

    def get(self, tenant: TenantId, output_id: OutputId, *, first: int = 0) -> AsyncIterator[bytes]:
        """An output from a byte on, piece by piece; nothing where nothing is kept.

        Raises LogUnavailable, also when it comes to an end too early.
        """
        ...

    async def remove_all(self, at: Address) -> None:
        """Forget every output of a session before its time, also those that no event names.

        Raises LogUnavailable; doing it again does the rest.
        """
        ...


class Requests(Protocol):
    """Request and reply between services."""

    async def request(self, subject: str, body: bytes, *, timeout_s: float) -> bytes:
        """One answer. Raises Unanswered (nobody there) or LogUnavailable (no answer in time)."""
        ...


class ToolRegistrations(Protocol):
    """What services of a tenant registered: small named values that every process can read."""

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        """Keep a value under its key, instead of what was there. Raises LogUnavailable."""
        ...

    async def remove(self, tenant: TenantId, key: str) -> None:
        """Forget a key."""
        ...

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        """Everything that one tenant has now, by key. Raises LogUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One public event on its way to the feed, deduplicated by its id."""

    subject: str
    event_id: str
    payload: bytes


class Feed(Protocol):
    """The public feed: one message per public event, in order."""

    async def publish(self, items: Sequence[FeedItem]) -> None:
        """Publish in order; an item already there is not stored again."""
        ...

    async def close(self, at: Address, last: FeedItem) -> None:
        """Publish a session's last item, and forget everything the feed held of it before."""
        ...

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        """How far the feed of a shard has come, and the revision that guards the next advance."""
        ...

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        """Move the checkpoint; the answer is its new revision. Raises AppendConflict if fenced."""
        ...


class Approvals(Protocol):
    """What people approved for always, by project. Each is there once, whoever saves it."""

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        """Keep an approval of an action for each resource pattern; those that are kept stay."""
        ...

    async def get_all(self, tenant: TenantId, project_id: str) -> tuple[SavedPermission, ...]:
        """The approvals of a project, in the order in which they were saved: never stale."""
        ...

    async def remove(self, tenant: TenantId, id_: str) -> None:
        """Forget one approval, if it is there."""
        ...

    async def revision(self) -> int:
        """Changes whenever anything is saved or removed."""
        ...


class DeadLetters(Protocol):
    """Where poison goes."""

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        """Keep a message that can never be handled, with its reason."""
        ...
