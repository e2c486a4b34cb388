"""The desk every verb works at: the log, the folded sessions, and one commit at a time per session."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Final, TypeAlias
from weakref import WeakValueDictionary

from faststream import Context

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.waker import Waker
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.events import SessionEvent
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.session_fold import SESSION_FOLD
from fairlead_session.state import Session

APPEND_TRIES: Final = 32

Decide: TypeAlias = Callable[[Session], tuple[SessionEvent, ...]]
"""What to write, given the session as it is now; nothing when nothing is to be written."""


class CommandContext:
    """Decides from the log, writes to the log, and asks for work to be done."""

    def __init__(self, eventlog: EventLog, settings: IngestSettings) -> None:
        self.eventlog = eventlog
        self.settings = settings
        self._folded = SessionCache(
            eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=settings.cache_sessions_max
        )
        self.waker = Waker(eventlog, self._folded)
        self._locks: WeakValueDictionary[Address, asyncio.Lock] = WeakValueDictionary()

    async def load(self, at: Address) -> Session:
        """The session as it is now."""
        return (await self.look(at)).state

    async def look(self, at: Address) -> Versioned[Session]:
        """The session as it is now, and where its log ends."""
        return await self._folded.load(at)

    async def commit(
        self, at: Address, decide: Decide, *, seen: Versioned[Session] | None = None
    ) -> Session:
        """Write what `decide` says. If another writer was first, decide again from what it wrote.

        Whoever has just looked at the session need not look again.
        """
        async with self._alone(at):
            for _ in range(APPEND_TRIES):
                known, seen = seen or await self._folded.load(at), None
                events = decide(known.state)
                if not events:
                    return known.state
                try:
                    return (await self._append(at, known, events)).state
                except AppendConflict:
                    continue
        raise ServiceUnavailable("The session is too busy to write to now", service="session.log")

    async def _append(
        self, at: Address, known: Versioned[Session], events: tuple[SessionEvent, ...]
    ) -> Versioned[Session]:
        now = ids.now_ms()
        drafts = tuple(Draft(ids.event_id(), now, event) for event in events)
        stored = await self.eventlog.log.append(at, ids.commit_id(), drafts, after=known.head)
        written = self._folded.fold(known, stored)
        self._folded.put(at, written)
        return written

    def _alone(self, at: Address) -> AbstractAsyncContextManager[None]:
        """One writer per session in this process; the log settles the rest."""
        lock = self._locks.get(at)
        if lock is None:
            lock = self._locks[at] = asyncio.Lock()
        return lock


CONTEXT: Final = "command_context"
ContextDep: TypeAlias = Annotated[CommandContext, Context(CONTEXT)]
"""The context that the server of the verbs gives to each handler."""
