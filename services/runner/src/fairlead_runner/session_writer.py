"""The runner's hand on one session: what the log holds, and what is about to be written.

Decisions are staged and written together; if the session moved meanwhile they are thrown away and
made again. Facts, once they happened in the world, are written whatever else was written before
them, as long as this runner still owns the session.
"""

import asyncio

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.ports import StoredCommit
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_runner.turn_metrics import count
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import RunnerId
from fairlead_schema.record import Draft, record
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.execution.ownership import owns
from fairlead_session.fold.evolve import evolve
from fairlead_session.state import Session


class Moved(Exception):
    """Somebody wrote first: what was staged is gone, decide again."""


class Fenced(Exception):
    """Another runner owns the session: stop, and touch nothing more."""


class SessionWriter:
    """Reads and writes one session for one drain."""

    def __init__(
        self,
        at: Address,
        known: Versioned[Session],
        eventlog: EventLog,
        folded: SessionCache[Session],
    ) -> None:
        self.at = at
        self.session = known.state
        self.opened_seq = known.state.seq
        self._known = known
        self._staged: tuple[Draft, ...] = ()
        self._log = eventlog.log
        # Facts are written while a nudge may ask for a fresh look: one at a time.
        self._alone = asyncio.Lock()
        self._folded = folded

    @property
    def durable(self) -> Session:
        """The session as the log holds it."""
        return self._known.state

    @property
    def known(self) -> Versioned[Session]:
        return self._known

    def stage(self, *events: SessionEvent) -> None:
        """Decide, without writing yet; `session` shows what it would become."""
        drafts = _drafts(events)
        for recorded in record(drafts, after=self.session.seq):
            self.session = evolve(self.session, recorded)
        self._staged = (*self._staged, *drafts)

    def unstage(self) -> None:
        """Forget what was staged."""
        self._staged = ()
        self.session = self.durable

    async def commit(self) -> None:
        """Write everything staged, or nothing. Raises Moved."""
        if not self._staged:
            return
        before, becomes = self.durable.epoch, self.session
        try:
            stored = await self._stored(self._staged)
        except AppendConflict:
            await self.reload()
            raise Moved from None
        # What was staged is what the log now holds: it was folded as it was staged.
        self._written(Versioned(becomes, stored.head))
        count(before, self.durable.epoch)

    async def insist(
        self, events: tuple[SessionEvent, ...], runner: RunnerId, generation: int
    ) -> None:
        """Write facts after whatever others wrote. Raises Fenced once the session is not ours."""
        drafts, written = _drafts(events), not events
        async with self._alone:
            while not written:
                if not owns(self.durable, runner, generation):
                    raise Fenced(self.at.session_id)
                try:
                    stored = await self._stored(drafts)
                    self._written(self._folded.fold(self._known, stored))
                    written = True
                except AppendConflict:
                    await self._read_on()

    async def reload(self) -> None:
        """Read on to the session's present, and forget what was staged."""
        async with self._alone:
            await self._read_on()

    async def _read_on(self) -> None:
        self._become(await self._folded.advance(self.at, self._known))

    async def _stored(self, drafts: tuple[Draft, ...]) -> StoredCommit:
        return await self._log.append(self.at, ids.commit_id(), drafts, after=self._known.head)

    def _written(self, known: Versioned[Session]) -> None:
        self._become(known)
        self._folded.put(self.at, known)

    def _become(self, known: Versioned[Session]) -> None:
        self._known = known
        self.session = known.state
        self._staged = ()


def _drafts(events: tuple[SessionEvent, ...]) -> tuple[Draft, ...]:
    now = ids.now_ms()
    return tuple(Draft(ids.event_id(), now, event) for event in events)
