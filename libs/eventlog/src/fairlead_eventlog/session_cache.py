"""Loads folded sessions: from the cache, else from a snapshot, else from all commits."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from fairlead_eventlog.ports import START, Head, SessionLog, StoredCommit
from fairlead_eventlog.register_ports import Snapshot, Snapshots
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.commit_order import decode_commit, is_repeat
from fairlead_schema.record import (
    Commit,
    MalformedCommit,
    Recorded,
    RecordError,
    brings_news,
    encode,
)
from fairlead_schema.subjects import Address

BYTES_MAX: Final = 256 * 1024 * 1024

State = TypeVar("State")


class Versioned(NamedTuple, Generic[State]):
    """A folded state and the head it belongs to."""

    state: State
    head: Head
    bytes: int = 0
    """What was folded into the state: a cheap and rather high estimate of its size."""
    last: Commit | None = None
    """The last commit, if this process has read it."""
    previous: int = 0
    """The position before the last commit."""

    def encode_last(self) -> CommitHint | None:
        """The last commit for others who may have the state before it; None if it is not known."""
        if self.last is None:
            return None
        return CommitHint(self.head.position, self.previous, encode(self.last))


class Readable(NamedTuple, Generic[State]):
    """The readable beginning of a session. `error` says why the rest cannot be read, if there is one."""

    versioned: Versioned[State]
    error: RecordError | None = None


class Fold(Protocol[State]):
    """The functions that fold events into a state. The caller passes them: the log knows no states."""

    @property
    def initial(self) -> Callable[[Address], State]: ...
    @property
    def evolve(self) -> Callable[[State, Recorded], State]: ...
    @property
    def freeze(self) -> Callable[[State], bytes]: ...
    @property
    def thaw(self) -> Callable[[bytes], State | None]: ...


class SessionCache(Generic[State]):
    """A cache of folded sessions over a log, bounded by their number and their bytes.

    An evicted session is folded again.
    """

    def __init__(
        self,
        log: SessionLog,
        snapshots: Snapshots,
        fold: Fold[State],
        *,
        capacity: int,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._fold = fold
        self._capacity = capacity
        self._bytes_max = bytes_max
        self._bytes = 0
        self._cached: OrderedDict[Address, Versioned[State]] = OrderedDict()

    async def load(self, at: Address, *, reach: int = 0) -> Versioned[State]:
        """The session as a replica holds it, at least up to position `reach`.

        A replica may lag. To write nothing, or to say that something is missing, needs a confirmed
        load.
        """
        known = self._cached.get(at) or await self._load_snapshot(at)
        return await self.advance(at, known, reach=reach)

    async def load_before(self, at: Address, position: int) -> Versioned[State] | None:
        """The session as it was before the commit at a position; None if its snapshot is newer.

        The caller wants to see what that commit changes.
        """
        known = await self._load_snapshot(at)
        if known.head.position >= position:
            return None
        more = True
        while more:
            page = await self._log.read(at, after=known.head, reach=position)
            for stored in page.commits:
                if stored.position >= position:
                    self.put(at, known)
                    return known
                known = await self._follow(at, known, stored)
            more = page.more
        self.put(at, known)
        return known

    async def load_confirmed(self, at: Address) -> Versioned[State]:
        """The session as the leader of the log holds it now."""
        return await self.confirm(at, self._cached.get(at) or await self._load_snapshot(at))

    async def confirm(self, at: Address, known: Versioned[State]) -> Versioned[State]:
        """A known state, if the leader of the log has nothing newer, else the newer state."""
        last = await self._log.last_commit_position(at)
        if last == known.head.position:
            self.put(at, known)
            return known
        if last < known.head.position:
            # The log has become shorter: it was erased.
            self.evict(at)
            known = self._initial(at)
        return await self.advance(at, known, reach=last)

    async def load_readable(self, at: Address) -> Readable[State]:
        """The session as far as its log can be read now, and why the rest cannot be read.

        A whole one is cached: whoever reads a long session in pages asks for it with each page.
        """
        known = self._cached.get(at) or await self._load_snapshot(at)
        reach, more = await self._log.last_commit_position(at), True
        try:
            while more:
                page = await self._log.read(at, after=known.head, reach=reach)
                for stored in page.commits:
                    known = await self._follow(at, known, stored)
                more = page.more
        except RecordError as error:
            return Readable(known, error)
        self.put(at, known)
        return Readable(known)

    def peek(self, at: Address) -> Versioned[State] | None:
        """The session as it was when this process last read or wrote it, if it is cached."""
        return self._cached.get(at)

    async def advance(
        self, at: Address, known: Versioned[State], *, reach: int = 0
    ) -> Versioned[State]:
        """Fold the commits after a known state, at least up to a position, and cache the result."""
        more = True
        while more:
            page = await self._log.read(at, after=known.head, reach=reach)
            for stored in page.commits:
                known = await self._follow(at, known, stored)
            more = page.more
        self.put(at, known)
        return known

    def fold(self, known: Versioned[State], stored: StoredCommit) -> Versioned[State]:
        """The state after one more commit. An exact repeat of the last commit changes nothing.

        Raises RecordError if the commit cannot follow.
        """
        if not brings_news(stored.commit, seq=known.head.seq, last=known.last):
            return known._replace(head=stored.head, previous=known.head.position)
        state = known.state
        try:
            for recorded in stored.commit.events:
                state = self._fold.evolve(state, recorded)
        except AssertionError as error:
            # The fold asserts the rules of every log. A log that breaks one cannot be read.
            reason = str(error) or "the commit breaks a rule of every log"
            raise MalformedCommit(reason) from error
        return self.adopt(known, stored, state)

    def fold_next(self, at: Address, commit: CommitHint) -> Versioned[State] | None:
        """Fold a commit that somebody passed on, if it continues the cached state exactly.

        None: it does not, or it cannot be read. The log then says what there is.
        """
        known = self._cached.get(at)
        newer = None if known is None else self.continue_with(known, commit)
        if newer is not None:
            self.put(at, newer)
        return newer

    def continue_with(self, known: Versioned[State], commit: CommitHint) -> Versioned[State] | None:
        """The state after a commit that somebody passed on; None if it is not the next, or unreadable."""
        if commit.previous != known.head.position:
            return None
        try:
            return self.fold(known, decode_commit(commit))
        except RecordError:
            return None

    def adopt(
        self, known: Versioned[State], stored: StoredCommit, state: State
    ) -> Versioned[State]:
        """A state that the caller has folded: the known one with a stored commit."""
        size = stored.bytes if stored.ends_log else known.bytes + stored.bytes
        return Versioned(state, stored.head, size, stored.commit, known.head.position)

    def put(self, at: Address, known: Versioned[State]) -> None:
        """Cache a state unless a newer one is cached, and evict the least recently used ones."""
        cached = self._cached.get(at)
        if cached is None or cached.head.position <= known.head.position:
            self._bytes += known.bytes - (0 if cached is None else cached.bytes)
            self._cached[at] = known
        self._cached.move_to_end(at)
        while len(self._cached) > 1 and self._is_full():
            _, evicted = self._cached.popitem(last=False)
            self._bytes -= evicted.bytes

    def clear(self) -> None:
        """Remove every session: the log was restored, and may not have what they were folded from."""
        self._cached.clear()
        self._bytes = 0

    def evict(self, at: Address) -> None:
        """Remove a session from the cache."""
        evicted = self._cached.pop(at, None)
        self._bytes -= 0 if evicted is None else evicted.bytes

    async def save_snapshot(self, at: Address, known: Versioned[State]) -> None:
        """Store a snapshot, so that others load this session without all its commits.

        A purge or a marker that came meanwhile found no snapshot to remove, so both are looked for.
        """
        await self._snapshots.store(at, Snapshot(known.head, self._fold.freeze(known.state)))
        end = await self._log.end(at)
        if end.position < known.head.position or end.seq < known.head.seq:
            self.evict(at)
            await self._snapshots.remove(at)

    def _is_full(self) -> bool:
        return len(self._cached) > self._capacity or self._bytes > self._bytes_max

    def _initial(self, at: Address) -> Versioned[State]:
        return Versioned(self._fold.initial(at), START)

    async def _follow(
        self, at: Address, known: Versioned[State], stored: StoredCommit
    ) -> Versioned[State]:
        """The state after one more commit of the log. A repeat of any earlier commit changes nothing."""
        seq = known.head.seq
        if await is_repeat(self._log, at, stored, seq=seq, last=known.last):
            return known._replace(head=Head(stored.position, seq), previous=known.head.position)
        return self.fold(known, stored)

    async def _load_snapshot(self, at: Address) -> Versioned[State]:
        snapshot = await self._snapshots.load(at)
        state = None if snapshot is None else self._fold.thaw(snapshot.state)
        if snapshot is None or state is None:
            return self._initial(at)
        return Versioned(state, snapshot.head, len(snapshot.state))
