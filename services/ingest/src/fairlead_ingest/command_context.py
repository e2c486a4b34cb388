"""What every verb works with: the log, the cached sessions, and one writer for all of them."""

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

from faststream import Context

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import SessionBusy
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.waker import Waker
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session

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
        self._writer = SessionWriter(eventlog.log, self._folded, ids, tries_max=APPEND_TRIES)

    async def load(self, at: Address) -> Session:
        """The session as it is now."""
        return (await self.look(at)).state

    async def look(self, at: Address) -> Versioned[Session]:
        """The session as it is now, and where its log ends."""
        return await self._folded.load(at)

    async def commit(
        self, at: Address, decide: Decide, *, seen: Versioned[Session] | None = None
    ) -> Session:
        """Write what `decide` returns. If another writer was first, decide again after its commit.

        A caller that has just read the session passes it as `seen` and spares another read.
        """

        async def choose(session: Session) -> tuple[tuple[SessionEvent, ...], None]:
            return decide(session), None

        assumed = None if seen is None else AssumedState(seen)
        try:
            written = await self._writer.commit(at, choose, assumed=assumed)
        except SessionBusy as busy:
            reason = "The session is too busy to write to now"
            raise ServiceUnavailable(reason, service="session.log") from busy
        return written.after.state


CONTEXT: Final = "command_context"
ContextDep: TypeAlias = Annotated[CommandContext, Context(CONTEXT)]
"""The context that the server of the verbs gives to each handler."""
