"""How a worker reads and writes the sessions whose calls it runs."""

import asyncio
from math import inf
from weakref import WeakValueDictionary

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import (
    RETRY_S,
    AssumedState,
    Decide,
    SessionWriter,
    Value,
    Written,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session
from fairlead_tools.own_commits import OwnCommits


class CallLog:
    """Reads and writes the sessions whose calls one worker runs.

    Reads and writes wait while the servers are away, because the result of a call must not be lost.
    """

    def __init__(
        self, eventlog: EventLog, settings: ToolsConfig, *, retry_s: float = RETRY_S
    ) -> None:
        self._cache = SessionCache(
            eventlog.log,
            eventlog.snapshots,
            SESSION_FOLD,
            capacity=settings.cache_sessions_max,
            bytes_max=settings.cache_bytes_max,
        )
        self._writer = SessionWriter(
            eventlog.log, self._cache, ids, patience_s=inf, retry_s=retry_s
        )
        self._own_commits = OwnCommits(self._cache, sessions_max=settings.cache_sessions_max)
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()
        eventlog.status.on_restore(self._writer.forget_all)
        eventlog.status.on_restore(self._own_commits.clear)

    async def commit(
        self,
        at: Address,
        decide: Decide[Session, Value],
        *,
        assumed: AssumedState[Session] | None = None,
    ) -> Written[Session, Value]:
        """Write what `decide` returns. Raises SessionErased, CommitTooLarge, RecordError.

        What this worker has written since brings an assumed state up to date, so that the calls of
        one turn, which all assume one head, read nothing either.
        """
        lock = self._locks.get(at)
        if lock is None:
            lock = self._locks[at] = asyncio.Lock()
        async with lock:
            current = None if assumed is None else self._own_commits.apply(at, assumed)
            written = await self._writer.commit(at, decide, assumed=current)
            self._own_commits.add(at, written.after)
            return written

    def update(self, at: Address, assumed: AssumedState[Session]) -> AssumedState[Session] | None:
        """An assumed state with what this worker wrote since; None if the worker has seen even more."""
        updated = self._own_commits.apply(at, assumed)
        return None if self._writer.is_behind(at, updated) else updated

    def seen_position(self, at: Address) -> int | None:
        """The last position of the session that this worker has read or written."""
        return self._writer.seen_position(at)

    def latest(self, at: Address, assumed: AssumedState[Session]) -> AssumedState[Session]:
        """The newer of an assumed state and the cached one."""
        cached = self._cache.peek(at)
        newer = cached is not None and cached.head.position > assumed.head.position
        return AssumedState(cached) if cached is not None and newer else assumed

    async def location(self, at: Address) -> LocationRef | None:
        """The location of a session: from the cache if it is there, because it seldom changes."""
        session = self._cache.peek(at) or await self._writer.read(at)
        profile = session.state.profile
        return None if profile is None else profile.location

    async def read(self, at: Address) -> Session:
        """The session as the leader of the log holds it. Does not wait for a commit of this process."""
        return (await self._writer.read_confirmed(at)).state
