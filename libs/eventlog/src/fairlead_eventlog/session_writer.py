"""Writes to sessions: decide, append, and decide again when another writer was first."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from fairlead_eventlog.errors import AppendConflict, LogUnavailable, SessionBusy, SessionErased
from fairlead_eventlog.ports import Head, SessionLog
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_schema.events import SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, EventId
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address

RETRY_S: Final = 0.2
POSITIONS_MAX: Final = 4096

State = TypeVar("State")
Value = TypeVar("Value")

Decide: TypeAlias = Callable[[State], Awaitable[tuple[tuple[SessionEvent, ...], Value]]]
"""The events to write, given a session's state, and a value for the caller of `commit`."""


class IdSource(Protocol):
    """Mints what a commit needs. The module `fairlead_service.ids` is one."""

    def commit_id(self) -> CommitId: ...
    def event_id(self) -> EventId: ...
    def now_ms(self) -> int: ...


class AssumedState(NamedTuple, Generic[State]):
    """A state that a writer may decide from without reading the log. It may be old."""

    versioned: Versioned[State]
    complete: bool = True
    """False: the state holds only what this decision needs, so the cache must not keep it."""

    @property
    def state(self) -> State:
        return self.versioned.state

    @property
    def head(self) -> Head:
        return self.versioned.head


class CommitStamp(NamedTuple):
    """The id of a commit, the same in all its tries, and its caller."""

    id: CommitId
    by: PrincipalName | None


class Written(NamedTuple, Generic[State, Value]):
    """The session after a commit, and the value of the decision that counted."""

    after: AssumedState[State]
    value: Value


class SessionWriter(Generic[State]):
    """Writes to sessions for one process, one commit at a time per session.

    `tries_max` bounds the decisions of one commit; None decides until a decision is written.
    `wait_for_log` waits while the servers are away, for results that must not be lost.
    `retry_s` is the pause before the log is tried again.
    """

    def __init__(
        self,
        log: SessionLog,
        cache: SessionCache[State],
        ids: IdSource,
        *,
        tries_max: int | None = None,
        wait_for_log: bool = False,
        retry_s: float = RETRY_S,
    ) -> None:
        self._log = log
        self._cache = cache
        self._ids = ids
        self._tries_max = tries_max
        self._wait_for_log = wait_for_log
        self._retry_s = retry_s
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._positions: OrderedDict[Address, int] = OrderedDict()

    async def commit(
        self,
        at: Address,
        decide: Decide[State, Value],
        *,
        assumed: AssumedState[State] | None = None,
        by: PrincipalName | None = None,
    ) -> Written[State, Value]:
        """Write what `decide` returns, on behalf of `by`. After a conflict, read on and decide again.

        An assumed state spares the first read. A decision from it counts only if it is written:
        to write nothing is decided from the log. Raises SessionBusy, SessionErased,
        CommitTooLarge, LogUnavailable, RecordError.
        """
        async with self.lock(at):
            stamp = CommitStamp(self._ids.commit_id(), by)
            current = None if assumed is None or self.is_behind(at, assumed) else assumed
            is_read = False
            for _ in count() if self._tries_max is None else range(self._tries_max):
                if current is None:
                    current, is_read = AssumedState(await self.read(at)), True
                events, value = await decide(current.state)
                if not events and is_read:
                    return Written(current, value)
                if not events:
                    current = None
                    continue
                try:
                    return Written(await self._append(at, current, events, stamp), value)
                except AppendConflict:
                    current, is_read = await self._catch_up(at, current), True
        raise SessionBusy(at)

    async def append(
        self,
        at: Address,
        base: Versioned[State],
        drafts: tuple[Draft, ...],
        *,
        folded: State | None = None,
    ) -> Versioned[State]:
        """Append drafts to a complete state, once; `folded` is the state with them, if the caller has it.

        Raises AppendConflict, CommitTooLarge, LogUnavailable. The caller holds the lock.
        """
        stored = await self._log.append(at, self._ids.commit_id(), drafts, after=base.head)
        if folded is None:
            written = self._cache.fold(base, stored)
        else:
            written = Versioned(folded, stored.head)
        self._note(at, written)
        self._cache.put(at, written)
        return written

    async def read(self, at: Address, *, base: Versioned[State] | None = None) -> Versioned[State]:
        """The session as the log holds it now. A complete state `base` saves the read of earlier commits."""
        while True:
            try:
                if base is None:
                    session = await self._cache.load(at)
                else:
                    session = await self._cache.advance(at, base)
            except LogUnavailable:
                if not self._wait_for_log:
                    raise
                await asyncio.sleep(self._retry_s)
            else:
                self._note(at, session)
                return session

    def drafts(self, events: tuple[SessionEvent, ...]) -> tuple[Draft, ...]:
        """Events with their ids and the time."""
        now = self._ids.now_ms()
        return tuple(Draft(self._ids.event_id(), now, event) for event in events)

    def is_behind(self, at: Address, assumed: AssumedState[State]) -> bool:
        """Whether this process has seen more of the session: a write from here would conflict."""
        return assumed.head.position < self._positions.get(at, 0)

    def seen_position(self, at: Address) -> int | None:
        """The last position of the session that this process has read or written."""
        return self._positions.get(at)

    def forget_all(self) -> None:
        """Read every session again before the next write: the log was restored from a backup."""
        self._cache.clear()
        self._positions.clear()

    def lock(self, at: Address) -> AbstractAsyncContextManager[None]:
        """One writer per session in this process. The log settles the races between processes."""
        lock = self._locks.get(at)
        if lock is None:
            lock = self._locks[at] = asyncio.Lock()
        return lock

    async def _append(
        self,
        at: Address,
        base: AssumedState[State],
        events: tuple[SessionEvent, ...],
        stamp: CommitStamp,
    ) -> AssumedState[State]:
        drafts = self.drafts(events)
        while True:
            try:
                stored = await self._log.append(at, stamp.id, drafts, after=base.head, by=stamp.by)
            except LogUnavailable:
                if not self._wait_for_log:
                    raise
                await asyncio.sleep(self._retry_s)
                continue
            written = self._cache.fold(base.versioned, stored)
            self._note(at, written)
            if base.complete:
                self._cache.put(at, written)
            return AssumedState(written, base.complete)

    async def _catch_up(self, at: Address, base: AssumedState[State]) -> AssumedState[State]:
        """The session after another writer's commit. Raises SessionErased."""
        newer = await self.read(at, base=base.versioned if base.complete else None)
        if newer.head == base.head:
            # The read lags behind the leader, or the log has become shorter: it was erased.
            self._cache.evict(at)
            with suppress(LogUnavailable):
                if (await self._log.head(at)).position < base.head.position:
                    raise SessionErased(at)
            await asyncio.sleep(self._retry_s)
        return AssumedState(newer)

    def _note(self, at: Address, session: Versioned[State]) -> None:
        self._positions[at] = session.head.position
        self._positions.move_to_end(at)
        if len(self._positions) > POSITIONS_MAX:
            self._positions.popitem(last=False)
