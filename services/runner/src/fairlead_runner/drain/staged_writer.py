"""The events that one drain writes to its session, on top of the session writer.

Decisions are staged and written together. If another writer was first, they are dropped and the
drain decides again. Facts have happened already: they are appended behind whatever others wrote, as
long as this runner owns the session.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.session_cache import Versioned
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_runner.metrics import count_epoch_change
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import CommitId, RunnerId
from fairlead_schema.record import Draft, record
from fairlead_schema.subjects import Address
from fairlead_session.execution.ownership import owns
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session


class StaleDecision(Exception):
    """Another writer was first: the staged events are dropped, and the drain decides again."""


class OwnershipLost(Exception):
    """Another runner owns the session: this drain writes nothing more."""


@dataclass(frozen=True, slots=True)
class HeldFact:
    """An event that happened and is not written yet, and whether a newer state has room for it."""

    event: SessionEvent
    still_holds: Callable[[Session], bool]


class StagedWriter:
    """Reads and writes one session for one drain."""

    def __init__(
        self, at: Address, versioned: Versioned[Session], session_writer: SessionWriter[Session]
    ) -> None:
        self.at = at
        self.session = versioned.state
        """The session with the staged events."""
        self.opened_seq = versioned.state.seq
        self._versioned = versioned
        self._staged: tuple[Draft, ...] = ()
        self._commit_id: CommitId | None = None
        self._held: HeldFact | None = None
        self._expected_position = 0
        self._passed_on: CommitHint | None = None
        self._session_writer = session_writer

    @property
    def durable(self) -> Session:
        """The session as the log holds it."""
        return self._versioned.state

    @property
    def versioned(self) -> Versioned[Session]:
        """The session as the log holds it, with its head."""
        return self._versioned

    def stage(self, *events: SessionEvent) -> None:
        """Add events to the next commit; `session` shows the session with them."""
        drafts = self._session_writer.drafts(events)
        for recorded in record(drafts, after=self.session.seq):
            self.session = evolve(self.session, recorded)
        self._staged, self._commit_id = (*self._staged, *drafts), None

    def hold(self, fact: HeldFact) -> None:
        """Stage a fact without a commit of its own: it joins the next one, whatever that decides.

        Other staged events are dropped with the state that they were decided from. A fact is staged
        again, as long as it holds.
        """
        self._held = fact
        self.stage(fact.event)

    @property
    def is_holding(self) -> bool:
        """Whether a fact waits for the next commit."""
        return self._held is not None

    def unstage(self) -> None:
        """Drop the staged events, except for a held fact."""
        self._restage(self.durable)

    def expect(self, nudge: Nudge) -> None:
        """Another process has seen the log at a position: the next reload reads at least so far.

        If it passed its commit on, and nothing is missing before it, nothing has to be read.
        """
        self._expected_position = max(self._expected_position, nudge.position or 0)
        self._passed_on = nudge.commit

    async def commit(self) -> None:
        """Write everything staged, or nothing. Raises StaleDecision."""
        if not self._staged:
            return
        before, staged, folded = self._versioned, self._staged, self.session
        async with self._session_writer.lock(self.at):
            if self._versioned is not before:
                raise StaleDecision  # A fact was written or the log was read in the meantime.
            # The id stays through all tries, so a try with an unknown outcome is not written twice.
            self._commit_id = self._commit_id or self._session_writer.commit_id()
            try:
                after = await self._session_writer.append(
                    self.at, before, staged, commit_id=self._commit_id, folded=folded
                )
            except AppendConflict as conflict:
                self._adopt(await self._read_behind(before, conflict))
                raise StaleDecision from None
            self._held = None
            self._adopt(after)
        count_epoch_change(before.state.epoch, self.durable.epoch)

    async def append_until_written(
        self, events: tuple[SessionEvent, ...], runner: RunnerId, generation: int
    ) -> None:
        """Append facts behind whatever others wrote. Raises OwnershipLost."""
        if not events:
            return

        async def decide(session: Session) -> tuple[tuple[SessionEvent, ...], None]:
            if not owns(session, runner, generation):
                raise OwnershipLost(self.at.session_id)
            return events, None

        assumed = AssumedState(self._versioned)
        written = await self._session_writer.commit(self.at, decide, assumed=assumed)
        self._adopt(written.after.versioned)

    def check_ownership(self, runner: RunnerId, generation: int) -> None:
        """Raise OwnershipLost if the log, as far as it was read, names another owner."""
        if not owns(self.durable, runner, generation):
            raise OwnershipLost(self.at.session_id)

    async def reload(self) -> None:
        """Read what is new in the session, and drop the staged events."""
        async with self._session_writer.lock(self.at):
            reach, passed_on, self._passed_on = self._expected_position, self._passed_on, None
            if passed_on is not None and passed_on.position == reach:
                followed = self._session_writer.follow(self.at, self._versioned, passed_on)
                if followed is not None:
                    self._adopt(followed)
                    return
            self._adopt(await self._session_writer.read(self.at, base=self._versioned, reach=reach))

    async def find_news(self) -> Versioned[Session] | None:
        """The session if others have written to it. The staged events stay as they are."""
        async with self._session_writer.lock(self.at):
            before, reach = self._versioned, self._expected_position
            newer = await self._session_writer.read(self.at, base=before, reach=reach)
            return None if newer.head == before.head else newer

    def adopt(self, newer: Versioned[Session]) -> None:
        """Go on from a newer session, and drop the staged events."""
        self._adopt(newer)

    async def reload_confirmed(self) -> None:
        """Read the session up to the leader's end of the log, and drop the staged events."""
        async with self._session_writer.lock(self.at):
            self._adopt(await self._session_writer.read_confirmed(self.at, base=self._versioned))

    async def _read_behind(
        self, base: Versioned[Session], conflict: AppendConflict
    ) -> Versioned[Session]:
        """The session after another writer's commit, or from its beginning if the log is shorter.

        A commit that was passed on may be from before a restore: the log then never had it.
        """
        if conflict.actual is not None and conflict.actual < base.head.position:
            return await self._session_writer.read_confirmed(self.at, base=base)
        return await self._session_writer.read(self.at, base=base, reach=conflict.actual or 0)

    def _adopt(self, versioned: Versioned[Session]) -> None:
        self._versioned = versioned
        self._restage(versioned.state)

    def _restage(self, session: Session) -> None:
        """Stage nothing on a state but the held fact, unless it holds no more."""
        self.session = session
        self._staged, self._commit_id = (), None
        if self._held is None:
            return
        if self._held.still_holds(session):
            self.stage(self._held.event)
        else:
            self._held = None
