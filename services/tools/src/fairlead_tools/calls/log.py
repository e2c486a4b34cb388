"""A worker's hand on the log: decides from the fold, writes, and on a conflict decides again."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, LogUnavailable
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_schema.events import SessionEvent
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.session_fold import SESSION_FOLD
from fairlead_session.state import Session

RETRY_S: Final = 0.2
CACHE_SESSIONS_MAX: Final = 1024

Value = TypeVar("Value")
Decide: TypeAlias = Callable[[Session], Awaitable[tuple[tuple[SessionEvent, ...], Value]]]
"""What to write, given the session as it is now, and what that means to the writer."""


class Guess(NamedTuple):
    """A session as it was at some head: whole, or only as far as one call is concerned."""

    known: Versioned[Session]
    whole: bool = True

    @property
    def session(self) -> Session:
        return self.known.state


class Erased(Exception):
    """The session was deleted meanwhile: there is nothing left to write to."""


class CallLog:
    """Reads and writes the sessions whose calls one worker runs."""

    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog.log
        self._folded = SessionCache(
            eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=CACHE_SESSIONS_MAX
        )
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        self._seen: OrderedDict[Address, int] = OrderedDict()

    async def commit(
        self, at: Address, decide: Decide[Value], *, guess: Guess | None = None
    ) -> tuple[Guess, Value]:
        """Write what `decide` says; the answer is the session after it.

        A guess spares the look at the log: what is decided from it counts if it is written, which
        it only is while the guess is the head. While the servers are away this waits and repeats
        the same commit: a result that exists in the world is not given up. Raises Erased,
        CommitTooLarge, RecordError.
        """
        async with self._alone(at):
            guess = self.current(at, guess)
            if guess is not None:
                events, value = await decide(guess.session)
                written = await self._written(at, guess, events) if events else None
                if written is not None:
                    return written, value
            while True:
                read = Guess(await self._load(at))
                events, value = await decide(read.session)
                if not events:
                    return read, value
                written = await self._written(at, read, events)
                if written is not None:
                    return written, value
                await self._overtaken(at, read.known)

    def current(self, at: Address, guess: Guess | None) -> Guess | None:
        """A guess, unless this worker has seen more of the session."""
        behind = guess is not None and guess.known.head.position < self._seen.get(at, 0)
        return None if behind else guess

    def latest(self, at: Address, guess: Guess) -> Guess:
        """The better of a guess and what this worker has read since."""
        warm = self._folded.peek(at)
        newer = warm is not None and warm.head.position > guess.known.head.position
        return Guess(warm) if warm is not None and newer else guess

    async def location(self, at: Address) -> LocationRef | None:
        """Where a session lives, as far as this worker knows; it asks the log only once."""
        known = self._folded.peek(at) or await self._load(at)
        profile = known.state.profile
        return None if profile is None else profile.location

    async def read(self, at: Address) -> Session:
        """The session as it is now, also while this process decides about it."""
        return (await self._load(at)).state

    async def behind(self, at: Address, session: Session) -> bool:
        """Whether the log's leader has more than what was decided from: reads may lag."""
        return (await self._log.head(at)).seq > session.seq

    async def _load(self, at: Address) -> Versioned[Session]:
        while True:
            try:
                loaded = await self._folded.load(at)
            except LogUnavailable:
                await asyncio.sleep(RETRY_S)
            else:
                self._see(at, loaded)
                return loaded

    def _see(self, at: Address, known: Versioned[Session]) -> None:
        self._seen[at] = known.head.position
        self._seen.move_to_end(at)
        if len(self._seen) > CACHE_SESSIONS_MAX:
            self._seen.popitem(last=False)

    async def _written(
        self, at: Address, guess: Guess, events: tuple[SessionEvent, ...]
    ) -> Guess | None:
        """The session after the events; None if another writer was first."""
        known = guess.known
        now, commit_id = ids.now_ms(), ids.commit_id()
        drafts = tuple(Draft(ids.event_id(), now, event) for event in events)
        while True:
            try:
                stored = await self._log.append(at, commit_id, drafts, after=known.head)
            except AppendConflict:
                return None
            except LogUnavailable:
                await asyncio.sleep(RETRY_S)
                continue
            written = self._folded.fold(known, stored)
            self._see(at, written)
            if guess.whole:
                self._folded.put(at, written)
            return Guess(written, guess.whole)

    async def _overtaken(self, at: Address, known: Versioned[Session]) -> None:
        """See what the other wrote. A log that is now shorter than it was has been erased."""
        if (await self._load(at)).head != known.head:
            return
        self._folded.evict(at)
        with suppress(LogUnavailable):
            if (await self._log.head(at)).position < known.head.position:
                raise Erased(at.session_id)
        await asyncio.sleep(RETRY_S)

    def _alone(self, at: Address) -> AbstractAsyncContextManager[None]:
        """One writer per session in this process; the log settles the rest."""
        lock = self._locks.get(at)
        if lock is None:
            lock = self._locks[at] = asyncio.Lock()
        return lock
