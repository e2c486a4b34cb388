"""How a worker reads and writes the sessions whose calls it runs."""

from math import inf
from typing import Final

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
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session

CACHE_SESSIONS_MAX: Final = 1024


class CallLog:
    """Reads and writes the sessions whose calls one worker runs.

    Reads and writes wait while the servers are away, because the result of a call must not be lost.
    """

    def __init__(self, eventlog: EventLog, *, retry_s: float = RETRY_S) -> None:
        self._cache = SessionCache(
            eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=CACHE_SESSIONS_MAX
        )
        self._writer = SessionWriter(
            eventlog.log, self._cache, ids, patience_s=inf, retry_s=retry_s
        )
        eventlog.status.on_restore(self._writer.forget_all)

    async def commit(
        self,
        at: Address,
        decide: Decide[Session, Value],
        *,
        assumed: AssumedState[Session] | None = None,
    ) -> Written[Session, Value]:
        """Write what `decide` returns. Raises SessionErased, CommitTooLarge, RecordError."""
        return await self._writer.commit(at, decide, assumed=assumed)

    def is_behind(self, at: Address, assumed: AssumedState[Session]) -> bool:
        """Whether this worker has seen more of the session than an assumed state holds."""
        return self._writer.is_behind(at, assumed)

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
