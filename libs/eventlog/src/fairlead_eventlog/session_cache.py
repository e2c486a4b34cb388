"""Loads folded sessions: from the cache, else from a snapshot, else from all commits."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from fairlead_eventlog.ports import START, Head, SessionLog, Snapshot, Snapshots, StoredCommit
from fairlead_schema.record import MalformedCommit, Recorded, RecordError
from fairlead_schema.subjects import Address

State = TypeVar("State")


class Versioned(NamedTuple, Generic[State]):
    """A folded state and the head it belongs to."""

    state: State
    head: Head


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
    """A bounded cache of folded sessions over a log. An evicted session is folded again."""

    def __init__(
        self, log: SessionLog, snapshots: Snapshots, fold: Fold[State], *, capacity: int
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._fold = fold
        self._capacity = capacity
        self._cached: OrderedDict[Address, Versioned[State]] = OrderedDict()

    async def load(self, at: Address) -> Versioned[State]:
        """The session as the log holds it now."""
        return await self.advance(at, self._cached.get(at) or await self._load_snapshot(at))

    async def load_readable(self, at: Address) -> Readable[State]:
        """The session as far as its log can be read now, and why the rest cannot be read."""
        known = self._cached.get(at) or await self._load_snapshot(at)
        try:
            more = True
            while more:
                page = await self._log.read(at, after=known.head)
                for stored in page.commits:
                    known = self.fold(known, stored)
                more = page.more
        except RecordError as error:
            return Readable(known, error)
        return Readable(known)

    def peek(self, at: Address) -> Versioned[State] | None:
        """The session as it was when this process last read or wrote it, if it is cached."""
        return self._cached.get(at)

    async def advance(self, at: Address, known: Versioned[State]) -> Versioned[State]:
        """Fold the commits after a known state, and cache the result."""
        more = True
        while more:
            page = await self._log.read(at, after=known.head)
            for stored in page.commits:
                known = self.fold(known, stored)
            more = page.more
        self.put(at, known)
        return known

    def fold(self, known: Versioned[State], stored: StoredCommit) -> Versioned[State]:
        """The state after one more commit. Raises RecordError if the commit cannot follow."""
        state = known.state
        try:
            for recorded in stored.commit.events:
                state = self._fold.evolve(state, recorded)
        except AssertionError as error:
            # The fold asserts the rules of every log. A log that breaks one cannot be read.
            reason = str(error) or "the commit breaks a rule of every log"
            raise MalformedCommit(reason) from error
        return Versioned(state, stored.head)

    def put(self, at: Address, known: Versioned[State]) -> None:
        """Cache a state, and evict the least recently used one."""
        self._cached[at] = known
        self._cached.move_to_end(at)
        if len(self._cached) > self._capacity:
            self._cached.popitem(last=False)

    def clear(self) -> None:
        """Remove every session: the log was restored, and may not have what they were folded from."""
        self._cached.clear()

    def evict(self, at: Address) -> None:
        """Remove a session from the cache."""
        self._cached.pop(at, None)

    async def save_snapshot(self, at: Address, known: Versioned[State]) -> None:
        """Store a snapshot, so that others load this session without all its commits."""
        await self._snapshots.store(at, Snapshot(known.head, self._fold.freeze(known.state)))

    async def _load_snapshot(self, at: Address) -> Versioned[State]:
        snapshot = await self._snapshots.load(at)
        state = None if snapshot is None else self._fold.thaw(snapshot.state)
        if snapshot is None or state is None:
            return Versioned(self._fold.initial(at), START)
        return Versioned(state, snapshot.head)
