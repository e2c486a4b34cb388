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
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.patience import Patience
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_schema.events import SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, EventId
from fairlead_schema.record import Draft, ends_log
from fairlead_schema.subjects import Address

RETRY_S: Final = 0.2
POSITIONS_MAX: Final = 4096

State = TypeVar("State")
Value = TypeVar("Value")
Events: TypeAlias = tuple[SessionEvent, ...]

Decide: TypeAlias = Callable[[State], Awaitable[tuple[Events, Value]]]
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


class Written(NamedTuple, Generic[State, Value]):
    """The session after a commit, and the value of the decision that counted."""

    after: AssumedState[State]
    value: Value
    met_others: bool = False
    """Whether the append conflicted: somebody else writes to the session too."""


class _Refusal(NamedTuple):
    """The exception of a decision. It writes nothing, like a decision without events."""

    error: Exception


class _Stamp:
    """What stays the same in all tries of a commit: its id, its caller, and the ids of its events."""

    def __init__(self, ids: IdSource, by: PrincipalName | None) -> None:
        self.id = ids.commit_id()
        self.by = by
        self._ids = ids
        self._events: Events = ()
        self._drafts: tuple[Draft, ...] = ()

    def drafts(self, events: Events) -> tuple[Draft, ...]:
        """Drafts of the events. The events of an earlier try keep their ids and their time."""
        if events != self._events:
            self._events, self._drafts = events, draft_events(self._ids, events)
        return self._drafts


def draft_events(ids: IdSource, events: Events) -> tuple[Draft, ...]:
    """Events with their ids and the time."""
    now = ids.now_ms()
    return tuple(Draft(ids.event_id(), now, event) for event in events)


class SessionWriter(Generic[State]):
    """Writes to sessions for one process, one commit at a time per session.

    `tries_max` bounds the decisions of one commit; None decides until a decision is written.
    `patience_s` is how long the log is tried again while the servers are away or elect a leader;
    it is infinite for results that must not be lost.
    `retry_s` is the first pause before the log is tried again.
    """

    def __init__(
        self,
        log: SessionLog,
        cache: SessionCache[State],
        ids: IdSource,
        *,
        tries_max: int | None = None,
        patience_s: float = 0.0,
        retry_s: float = RETRY_S,
    ) -> None:
        self._log = log
        self._cache = cache
        self._ids = ids
        self._tries_max = tries_max
        self._patience_s = patience_s
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

        An assumed state spares the first read. To write nothing, or to raise, counts only if the
        leader of the log has nothing newer: else `decide` is asked again. Raises SessionBusy,
        SessionErased, CommitTooLarge, LogUnavailable, RecordError.
        """
        async with self.lock(at):
            stamp = _Stamp(self._ids, by)
            current = self._catch_up_here(at, assumed)
            is_confirmed, met_others = False, False
            for _ in count() if self._tries_max is None else range(self._tries_max):
                if current is None:
                    current = AssumedState(await self.read(at))
                events, value = await _ask(decide, current.state)
                if events and not isinstance(value, _Refusal):
                    try:
                        written = await self._append(at, current, stamp, events)
                        return Written(written, value, met_others)
                    except AppendConflict as conflict:
                        current = await self._catch_up(at, current, conflict)
                        is_confirmed, met_others = False, True
                        continue
                newest = current if is_confirmed else await self._confirm(at, current)
                if newest is current:
                    if isinstance(value, _Refusal):
                        raise value.error
                    return Written(current, value, met_others)
                current, is_confirmed = newest, True
        raise SessionBusy(at)

    async def append(
        self,
        at: Address,
        base: Versioned[State],
        drafts: tuple[Draft, ...],
        *,
        commit_id: CommitId,
        folded: State,
    ) -> Versioned[State]:
        """Append drafts to a complete state, once; `folded` is the state with them.

        Raises AppendConflict, SessionErased, CommitTooLarge, LogUnavailable. The caller holds the lock.
        """
        _check_not_erased(at, base)
        stored = await self._log.append(at, commit_id, drafts, after=base.head)
        written = self._cache.adopt(base, stored, folded)
        self._note(at, written)
        self._cache.put(at, written)
        return written

    async def read(
        self, at: Address, *, base: Versioned[State] | None = None, reach: int = 0
    ) -> Versioned[State]:
        """The session as a replica of the log holds it, at least up to position `reach`.

        A complete state `base` saves the read of earlier commits.
        """
        if base is None:
            return await self._patiently(at, lambda: self._cache.load(at, reach=reach))
        return await self._patiently(at, lambda: self._cache.advance(at, base, reach=reach))

    async def read_confirmed(
        self, at: Address, *, base: Versioned[State] | None = None
    ) -> Versioned[State]:
        """The session as the leader of the log holds it now."""
        if base is None:
            return await self._patiently(at, lambda: self._cache.load_confirmed(at))
        return await self._patiently(at, lambda: self._cache.confirm(at, base))

    def follow(
        self, at: Address, base: Versioned[State], commit: CommitHint
    ) -> Versioned[State] | None:
        """A complete state with the commit that its writer passed on.

        None: the commit does not follow this state, or cannot be read. The log then says what there is.
        """
        newer = self._cache.continue_with(base, commit)
        if newer is not None:
            self._note(at, newer)
            self._cache.put(at, newer)
        return newer

    def commit_id(self) -> CommitId:
        """The id of a new commit, for all its tries."""
        return self._ids.commit_id()

    def drafts(self, events: Events) -> tuple[Draft, ...]:
        """Events with their ids and the time."""
        return draft_events(self._ids, events)

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
        self, at: Address, base: AssumedState[State], stamp: _Stamp, events: Events
    ) -> AssumedState[State]:
        _check_not_erased(at, base.versioned)
        drafts, patience = stamp.drafts(events), Patience(self._patience_s, self._retry_s)
        while True:
            try:
                stored = await self._log.append(at, stamp.id, drafts, after=base.head, by=stamp.by)
            except LogUnavailable:
                if not await patience.pause():
                    raise
                continue
            written = self._cache.fold(base.versioned, stored)
            self._note(at, written)
            if base.complete:
                self._cache.put(at, written)
            return AssumedState(written, base.complete)

    def _catch_up_here(
        self, at: Address, assumed: AssumedState[State] | None
    ) -> AssumedState[State] | None:
        """What to write from: what was assumed, or what this process has written since; None: read."""
        if assumed is None or not self.is_behind(at, assumed):
            return assumed
        known = self._cache.peek(at)
        newer = None if known is None else AssumedState(known)
        return None if newer is None or self.is_behind(at, newer) else newer

    async def _catch_up(
        self, at: Address, base: AssumedState[State], conflict: AppendConflict
    ) -> AssumedState[State]:
        """The session after another writer's commit. Raises SessionErased."""
        known = base.versioned if base.complete else None
        newer = await self.read(at, base=known, reach=conflict.actual or 0)
        if newer.head == base.head:
            # The read lags behind the leader, or the log has become shorter: it was erased.
            self._cache.evict(at)
            with suppress(LogUnavailable):
                if await self._log.last_commit_position(at) < base.head.position:
                    raise SessionErased(at)
            await asyncio.sleep(self._retry_s)
        return AssumedState(newer)

    async def _confirm(self, at: Address, current: AssumedState[State]) -> AssumedState[State]:
        """The same state if it is complete and the leader has nothing newer, else the newer one."""
        known = current.versioned if current.complete else None
        confirmed = await self.read_confirmed(at, base=known)
        is_same = current.complete and confirmed.head == current.head
        return current if is_same else AssumedState(confirmed)

    async def _patiently(
        self, at: Address, read: Callable[[], Awaitable[Versioned[State]]]
    ) -> Versioned[State]:
        """Read, and read again while the servers are away or elect a leader."""
        patience = Patience(self._patience_s, self._retry_s)
        while True:
            try:
                session = await read()
            except LogUnavailable:
                if not await patience.pause():
                    raise
            else:
                self._note(at, session)
                return session

    def _note(self, at: Address, session: Versioned[State]) -> None:
        self._positions[at] = session.head.position
        self._positions.move_to_end(at)
        if len(self._positions) > POSITIONS_MAX:
            self._positions.popitem(last=False)


async def _ask(decide: Decide[State, Value], state: State) -> tuple[Events, Value | _Refusal]:
    try:
        return await decide(state)
    except Exception as error:  # noqa: BLE001 - raised again as soon as the state is confirmed
        return (), _Refusal(error)


def _check_not_erased(at: Address, base: Versioned[State]) -> None:
    """No writer goes on behind the last word of a session, or behind its marker. Raises SessionErased."""
    if base.last is not None and ends_log(base.last):
        raise SessionErased(at)
