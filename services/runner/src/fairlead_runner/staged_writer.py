"""What one drain writes to its session, on top of the session writer.

Decisions are staged and written together. If another writer was first they are dropped, and the
drain decides again. Facts that happened in the world are appended after whatever others wrote, as
long as this runner owns the session.
"""

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.session_cache import Versioned
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_runner.turn_metrics import count
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import RunnerId
from fairlead_schema.record import Draft, record
from fairlead_schema.subjects import Address
from fairlead_session.execution.ownership import owns
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session


class StaleDecision(Exception):
    """Another writer was first: the staged events are dropped, decide again."""


class OwnershipLost(Exception):
    """Another runner owns the session: stop, and write nothing more."""


class StagedWriter:
    """Reads and writes one session for one drain."""

    def __init__(
        self, at: Address, known: Versioned[Session], writer: SessionWriter[Session]
    ) -> None:
        self.at = at
        self.session = known.state
        self.opened_seq = known.state.seq
        self._known = known
        self._staged: tuple[Draft, ...] = ()
        self._writer = writer

    @property
    def durable(self) -> Session:
        """The session as the log holds it."""
        return self._known.state

    @property
    def known(self) -> Versioned[Session]:
        return self._known

    def stage(self, *events: SessionEvent) -> None:
        """Add events to the next commit; `session` shows the session with them."""
        drafts = self._writer.drafts(events)
        for recorded in record(drafts, after=self.session.seq):
            self.session = evolve(self.session, recorded)
        self._staged = (*self._staged, *drafts)

    def unstage(self) -> None:
        """Drop the staged events."""
        self._staged = ()
        self.session = self.durable

    async def commit(self) -> None:
        """Write everything staged, or nothing. Raises StaleDecision."""
        if not self._staged:
            return
        known, staged, folded = self._known, self._staged, self.session
        async with self._writer.lock(self.at):
            if self._known is not known:
                raise StaleDecision  # A fact was written, or the log was read, while this commit waited.
            try:
                written = await self._writer.append(self.at, known, staged, folded=folded)
            except AppendConflict:
                self._become(await self._writer.read(self.at, known=known))
                raise StaleDecision from None
            self._become(written)
        count(known.state.epoch, self.durable.epoch)

    async def append_until_written(
        self, events: tuple[SessionEvent, ...], runner: RunnerId, generation: int
    ) -> None:
        """Append facts after whatever others wrote. Raises OwnershipLost."""
        if not events:
            return

        async def decide(session: Session) -> tuple[tuple[SessionEvent, ...], None]:
            if not owns(session, runner, generation):
                raise OwnershipLost(self.at.session_id)
            return events, None

        written = await self._writer.commit(self.at, decide, assumed=AssumedState(self._known))
        self._become(written.after.versioned)

    async def reload(self) -> None:
        """Read the session on to its present, and drop the staged events."""
        async with self._writer.lock(self.at):
            self._become(await self._writer.read(self.at, known=self._known))

    def _become(self, known: Versioned[Session]) -> None:
        self._known = known
        self.session = known.state
        self._staged = ()
