"""Loads folded sessions: warm if cached, else a snapshot and the commits after it, else all of them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from fairlead_eventlog.ports import START, Head, SessionLog, Snapshot, Snapshots, StoredCommit
from fairlead_schema.record import MalformedCommit, Recorded
from fairlead_schema.subjects import Address

State = TypeVar("State")


class Versioned(NamedTuple, Generic[State]):
    """A folded state and the head it belongs to."""

    state: State
    head: Head


class Fold(Protocol[State]):
    """How a reader folds: the core's functions, handed in so that the log needs no core."""

    @property
    def initial(self) -> Callable[[Address], State]: ...
    @property
    def evolve(self) -> Callable[[State, Recorded], State]: ...
    @property
    def freeze(self) -> Callable[[State], bytes]: ...
    @property
    def thaw(self) -> Callable[[bytes], State | None]: ...


class SessionCache(Generic[State]):
    """A bounded cache of folded sessions over a log. Whatever it forgets, it can fold again."""

    def __init__(
        self, log: SessionLog, snapshots: Snapshots, folding: Fold[State], *, capacity: int
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._folding = folding
        self._capacity = capacity
        self._warm: OrderedDict[Address, Versioned[State]] = OrderedDict()

    async def load(self, at: Address) -> Versioned[State]:
        """The session as far as the log can be read now."""
        known = self._warm.get(at)
        return await self.advance(at, known or await self._cold(at))

    def peek(self, at: Address) -> Versioned[State] | None:
        """The session as it was when it was last looked at, if that is still known."""
        return self._warm.get(at)

    async def advance(self, at: Address, known: Versioned[State]) -> Versioned[State]:
        """Fold what came after a known state."""
        more = True
        while more:
            page = await self._log.read(at, after=known.head)
            for stored in page.commits:
                known = self.fold(known, stored)
            more = page.more
        self.put(at, known)
        return known

    def fold(self, known: Versioned[State], stored: StoredCommit) -> Versioned[State]:
        """The state after one more commit. Raises RecordError for one that cannot follow."""
        state = known.state
        try:
            for recorded in stored.commit.events:
                state = self._folding.evolve(state, recorded)
        except AssertionError as error:
            # The fold asserts what every log holds: one that does not is as unreadable as any.
            reason = str(error) or "it breaks a rule that every log keeps"
            raise MalformedCommit(reason) from error
        return Versioned(state, stored.head)

    def put(self, at: Address, known: Versioned[State]) -> None:
        """Remember a state, and forget the one unused for longest."""
        self._warm[at] = known
        self._warm.move_to_end(at)
        if len(self._warm) > self._capacity:
            self._warm.popitem(last=False)

    def evict(self, at: Address) -> None:
        """Drop a cached state."""
        self._warm.pop(at, None)

    async def save_snapshot(self, at: Address, known: Versioned[State]) -> None:
        """Store a snapshot, so that others load this session without replaying it."""
        await self._snapshots.store(at, Snapshot(known.head, self._folding.freeze(known.state)))

    async def _cold(self, at: Address) -> Versioned[State]:
        snapshot = await self._snapshots.load(at)
        state = None if snapshot is None else self._folding.thaw(snapshot.state)
        if snapshot is None or state is None:
            return Versioned(self._folding.initial(at), START)
        return Versioned(state, snapshot.head)
