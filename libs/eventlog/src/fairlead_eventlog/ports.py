"""The ports: what Fairlead needs of its log. JetStream and an in-memory twin implement every one."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, Self

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.slots import Slots
from fairlead_schema.delta import Delta
from fairlead_schema.events import SessionPurged, SessionStored
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, TenantId
from fairlead_schema.record import Commit, Draft, ends_log
from fairlead_schema.subjects import Address


class Head(NamedTuple):
    """How far a session has come: the position of its last commit, the seq of its last event."""

    position: int
    seq: int


START = Head(0, 0)


class StoredCommit(NamedTuple):
    """A commit and its position in the log."""

    position: int
    commit: Commit
    bytes: int = 0
    """The size of the commit in the log."""

    @property
    def head(self) -> Head:
        return Head(self.position, self.commit.events[-1].seq)

    @property
    def is_purge(self) -> bool:
        """Whether this commit ends a purged session: no earlier commit of the session exists."""
        return isinstance(self.commit.events[-1].event, SessionPurged)

    @property
    def marker(self) -> SessionStored | None:
        """What says that the session is stored in a file. The next event has the seq 1 again."""
        event = self.commit.events[-1].event
        return event if isinstance(event, SessionStored) else None

    @property
    def ends_log(self) -> bool:
        """Whether earlier commits do not count any more, after a purge or a marker."""
        return ends_log(self.commit)


class CommitPage(NamedTuple):
    """Some commits in order, and whether the log has more after them."""

    commits: tuple[StoredCommit, ...]
    more: bool


class LogEntry(NamedTuple):
    """One message of a shard, still encoded: an unreadable message must not stop the reader."""

    position: int
    at: Address
    payload: bytes


class EntryPage(NamedTuple):
    """Some entries of a session in order, and whether the log has more after them."""

    entries: tuple[LogEntry, ...]
    more: bool


class SessionLog(Protocol):
    """One ordered log per session."""

    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        """Store all drafts as one commit if the session is still at `after`; `by` is the caller.

        Appending a commit id that is stored already returns that commit.
        Raises AppendConflict, CommitTooLarge, LogUnavailable.
        """

    async def restore(
        self, at: Address, commit: Commit, payload: bytes, *, after: Head
    ) -> StoredCommit:
        """Store a commit of an import with these bytes, if the session is still at `after`.

        A commit with the same first event that is stored there already is returned.
        Raises AppendConflict, NotFinalised, CommitTooLarge, LogUnavailable.
        """

    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        """The commits after a head that the caller has read before, oldest first.

        Any replica answers, and may lag: there are more pages until position `reach` is read.
        A page ends before a commit that cannot be read, and the next page raises RecordError.
        """

    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        """The entries after a position, oldest first, as they are stored: readable or not.

        Any replica answers, and may lag: there are more pages until position `reach` is read.
        """

    async def last_commit_position(self, at: Address) -> int:
        """The position of the last commit, a purge too, read from the leader; 0 without commits."""

    async def locate(self, at: Address, seq: int) -> Head:
        """A head at or before event `seq`, from which reading reaches the event after it."""

    async def head(self, at: Address) -> Head:
        """The head of the last commit, read from the leader.

        START for a session that was never written or was purged. The seq of a stored session is 0.
        Raises RecordError if the last commit cannot be read.
        """

    async def end(self, at: Address) -> Head:
        """Where the log of a session ends, read from the leader. Unlike `head`, never RecordError.

        The seq is what the last commit claims. START for a session without a log or purged.
        """

    def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        """Every commit with events after seq `after`, then each new commit, for ever.

        A marker comes too: it says that the session is stored, and that its seqs begin again.
        """

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        """Delete a session's commits before a position; without a position, every commit."""


BATCH_BYTES: Final = 8 * 1024 * 1024
"""How many bytes of a shard a reader takes at once, unless it says otherwise."""


class ShardLog(Protocol):
    """A whole shard in order, for projections."""

    def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = BATCH_BYTES
    ) -> AsyncIterator[Sequence[LogEntry]]:
        """Batches of entries after a position, then new entries as they land, for ever.

        A batch has at most so many bytes, or one entry.

        One process follows a shard under a reader's name. A second process ends the first.
        """

    async def forget_reader(self, shard: int, reader: str) -> None:
        """Remove what the server keeps for a reader, if anything. Whoever follows by this name is ended."""

    async def reader_position(self, shard: int, reader: str) -> int | None:
        """Up to where the server has delivered to a reader; None if it keeps nothing of the reader."""

    async def last_position(self, shard: int) -> int:
        """The position of the shard's last message, 0 for an empty shard."""

    def session_entries(self, at: Address, *, after: int) -> AsyncIterator[LogEntry]:
        """The entries of one session after a position, up to its end, oldest first."""

    async def entry_at(self, shard: int, position: int) -> LogEntry | None:
        """The entry at a position, from the leader; None if there is none, or none any more."""

    async def next_position(self, shard: int, *, after: int) -> int | None:
        """Where the next entry after a position is, from the leader; None if there is none."""


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
        """The place of the message in its queue, the same at every delivery."""

    @property
    def deliveries(self) -> int:
        """How often the message was delivered, this delivery included."""

    @property
    def trace(self) -> str | None:
        """The trace of whoever left the message; None without a valid one."""

    @property
    def stored_ms(self) -> int:
        """When the server stored the message, by the clock of the server."""

    async def extend(self) -> None:
        """Keep the message for another deadline."""

    async def ack(self) -> None:
        """Remove the message from its queue, and wait until the server has confirmed it."""

    async def retry_later(self, delay_s: float) -> None:
        """Put the message back. Any worker gets it again after the delay."""

    def release(self) -> None:
        """Free the slot. An unacknowledged message comes again later. A second call does nothing."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_exception: object) -> None: ...


class Wakes(Protocol):
    """Hints that a session may have work; at most one per session."""

    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        """Leave a wake for what the log holds up to a position; None: the caller does not know it.

        The wake carries the commit at that position if it is given and small: its runner may have
        all before it. False: the session has a wake already. Raises LogUnavailable.
        """

    async def renew(self, at: Address, *, position: int | None = None) -> bool:
        """Leave a new wake in place of the stored one. Raises LogUnavailable.

        A killed server may keep a wake that it never delivers, and that wake refuses all others.
        False: the stored wake waits for its first delivery, and keeps its place.
        """

    def take(self, slots: Slots) -> AsyncIterator[Job]:
        """Wakes for this process, as they come, of all tenants in turn.

        A wake excludes nobody: the log fences writers.
        """


class Timers(Protocol):
    """Durable timers, one per session."""

    async def wake_at(self, at: Address, time_ms: int) -> None:
        """Set the session's timer. A later call replaces an earlier one."""

    def take_due(self, slots: Slots) -> AsyncIterator[Job]:
        """The timers whose time has come. The taker wakes their sessions."""


class WorkQueue(Protocol):
    """Work that one of several workers should do."""

    async def put(self, subject: str, payload: bytes, *, once: str | None = None) -> None:
        """Store work durably. The same `once` within the stream's window is stored one time."""

    def take(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        """Jobs for this process, as they come. A job whose deadline passes goes to another worker."""

    async def is_first(self, stream: str, job: Job) -> bool:
        """Whether no earlier message of the job's subject is left in its stream.

        Raises LogUnavailable, StreamMissing.
        """

    def take_fairly(self, stream: str, consumer: str, slots: Slots) -> AsyncIterator[Job]:
        """Jobs as `take` gives them, of all tenants in turn.

        Jobs that wait for their turn are put back, so they count more deliveries.
        """


class Deltas(Protocol):
    """Live fragments of a session; nothing is stored."""

    async def send(self, at: Address, delta: Delta) -> None:
        """Broadcast one fragment."""

    def listen(self, at: Address) -> AsyncIterator[Delta]:
        """Fragments from now on; the subscription starts with the first await of the iterator."""


class Requests(Protocol):
    """Request and reply between services."""

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        timeout_s: float,
        by: PrincipalName | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """One answer. `by` names the principal on whose behalf a service asks, `headers` say more of it.

        Raises NoResponders (nobody serves it) or LogUnavailable (no answer in time).
        """


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One public event for the feed, stored once per event id."""

    subject: str
    event_id: str
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class ClientConsumer(NamedTuple):
    """A consumer that one of a tenant's own clients may pull from."""

    stream: str
    name: str


class ClientConsumers(Protocol):
    """Creates the consumers of tenants' own clients, because no grant can check their filters."""

    async def open_feed(
        self, tenant: TenantId, principal: str, *, after: int | None
    ) -> ClientConsumer:
        """The consumer of a tenant's public events.

        It begins after a sequence, else where it was left, else at the first event.
        """

    async def open_jobs(self, tenant: TenantId, principal: str) -> ClientConsumer:
        """The consumer of the queued calls below the principal's own subjects."""


class FeedState(NamedTuple):
    """What the feed of a shard knows besides its checkpoint."""

    incarnation: str | None = None
    """The incarnation of the log that the checkpoint belongs to; None if nobody noted it."""
    held: Mapping[Address, int] = MappingProxyType({})
    """The sessions that are held, each with the position of its first commit that was not read."""


class Feed(Protocol):
    """The public feed: one message per public event, in order."""

    async def publish(self, items: Sequence[FeedItem]) -> None:
        """Publish in order. An item that is in the feed already is not stored again."""

    async def close(self, at: Address, last: FeedItem) -> None:
        """Publish a session's last item, and delete every earlier item of the session."""

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        """How far the feed of a shard has come, and the revision that guards the next advance."""

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        """Move the checkpoint; the answer is its new revision. Raises AppendConflict if fenced."""

    async def state(self, shard: int) -> tuple[FeedState, int]:
        """What a shard's feed knows, and the revision that guards the next change."""

    async def save_state(self, shard: int, state: FeedState, *, revision: int) -> int:
        """Replace the state; the answer is its new revision. Raises AppendConflict if fenced."""


class DeadLetters(Protocol):
    """Messages that nobody can ever handle, for people to look at."""

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        """Store such a message with its reason."""
