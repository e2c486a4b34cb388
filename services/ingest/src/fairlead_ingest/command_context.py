"""The context of every command: the log, cached sessions, one writer, quotas, and the waker."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from faststream import Context

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import SessionBusy
from fairlead_eventlog.ports import START, StoredCommit
from fairlead_eventlog.quotas.tenant_totals import TenantTotalsReader
from fairlead_eventlog.session_cache import Readable, SessionCache, Versioned
from fairlead_eventlog.session_follower import SessionFollower
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_ingest.command_key import check_new, running_key
from fairlead_ingest.existing_session import check_in_log
from fairlead_ingest.page_ends import PageEnds
from fairlead_ingest.quotas import QuotaCheck
from fairlead_ingest.replayed_sessions import ReplayedSessions
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.waker import Waker
from fairlead_schema.errors import Conflict, ServiceUnavailable, SessionNotFound
from fairlead_schema.events import SessionEvent, SessionPurged
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.caller import current_caller
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.idempotency.keys import with_answer
from fairlead_session.next_move import is_moving
from fairlead_session.state.session import Session

APPEND_TRIES: Final = 32

Refusal = TypeVar("Refusal")
Value = TypeVar("Value")
Events: TypeAlias = tuple[SessionEvent, ...]
CommandDecider: TypeAlias = Callable[[Session], Events | Refusal]
"""A decider: the events to write, given the session as it is now, or a refusal."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A command that was decided: the session before and after it, and the events between."""

    before: Session
    events: Events
    session: Session


class CommandContext:
    """Decides from the log, writes to the log, and wakes runners."""

    def __init__(self, eventlog: EventLog, settings: IngestSettings) -> None:
        self.eventlog = eventlog
        self.settings = settings
        self.stopping = asyncio.Event()
        """Set when this process stops: requests that wait for a session end then."""
        self.waits = 0
        """How many requests wait for sessions now."""
        self._cache = SessionCache(
            eventlog.log,
            eventlog.snapshots,
            SESSION_FOLD,
            capacity=settings.cache_sessions_max,
            bytes_max=settings.cache_bytes_max,
        )
        self._follower = SessionFollower(
            eventlog.broadcasts, self._cache, sessions_max=settings.followed_sessions_max
        )
        self.waker = Waker(eventlog, self._cache, self._follower, settings.wake_timings)
        self.quotas = QuotaCheck(TenantTotalsReader(eventlog.requests), settings.config)
        self._writer = SessionWriter(eventlog.log, self._cache, ids, tries_max=APPEND_TRIES)
        self.page_ends = PageEnds()
        self.replayed = ReplayedSessions(eventlog, self.load_confirmed)
        eventlog.status.on_restore(self._writer.forget_all)
        eventlog.status.on_restore(self._follower.forget_all)
        eventlog.status.on_restore(self.replayed.forget_all)
        eventlog.status.on_restore(self.page_ends.forget_all)

    async def load(self, at: Address) -> Session:
        """The session as it is now."""
        return (await self.load_confirmed(at)).state

    async def load_confirmed(self, at: Address) -> Versioned[Session]:
        """The session as the leader of the log holds it. Raises SessionNotFound if it was purged unread."""
        return await self._unless_purged(at, self._cache.load_confirmed(at))

    async def load_assumed(self, at: Address) -> Versioned[Session]:
        """The session to write from, without a read if it can be assumed: what is missing may exist."""
        known = self._assume(at)
        return known if known is not None else await self._unless_purged(at, self._cache.load(at))

    def assume_new(self, at: Address) -> Versioned[Session]:
        """A session whose id was minted just now, so that nobody can have written to it."""
        return Versioned(SESSION_FOLD.initial(at), START)

    async def peek(self, at: Address) -> Session:
        """The session as this process last saw it. It may be old, but its creator never changes."""
        known = self._cache.peek(at)
        if known is None or known.state.seq == 0:
            return await self.load(at)
        return known.state

    async def load_readable(self, at: Address) -> Readable[Session]:
        """The session as far as its log can be read, and why the rest cannot be read."""
        return await self._cache.load_readable(at)

    async def follow_until(self, at: Address, is_met: Callable[[Session], bool]) -> None:
        """Follow a session until it meets a condition. The condition may raise."""
        session = await self.load_confirmed(at)
        if is_met(session.state):
            return
        tail = self.eventlog.log.tail(at, after=session.head.seq)
        async with aclosing(cast("AsyncGenerator[StoredCommit, None]", tail)) as commits:
            async for stored in commits:
                session = self._cache.fold(session, stored)
                if is_met(session.state):
                    return

    def forget(self, at: Address) -> None:
        """Drop a session from the cache. The next command reads its log."""
        self._cache.evict(at)

    async def nudge_owner(self, at: Address, session: Session) -> None:
        """Tell the owner of a session, if it has one, how far the session has come."""
        if session.execution.owner is not None:
            runner, position = session.execution.owner.runner, self._writer.seen_position(at)
            await self.eventlog.liveness.nudge(runner, at, position=position)

    async def commit(
        self,
        at: Address,
        decide: CommandDecider[Refusal],
        *,
        assumed: Versioned[Session] | None = None,
        by: PrincipalName | None = None,
    ) -> Committed | Refusal:
        """Write what `decide` returns. If another writer was first, decide again after its commit.

        The commit names the principal of the request that runs now, else `by`.

        A caller that has just read the session passes it as `assumed` to spare another read. A
        session that is followed or rests needs no read either: a decision not to write is confirmed
        anyway.
        """
        known = _newer(assumed, self._assume(at))

        # In quotes, because every command would evaluate it.
        async def choose(session: Session) -> "tuple[Events, tuple[Session, Events | Refusal]]":
            check_in_log(session)
            key = running_key(at)
            if key is not None:
                check_new(session, key)
            decision = decide(session)
            _require_complete(session, decision)
            if not isinstance(decision, tuple):
                return (), (session, decision)
            events = decision if key is None else with_answer(key, decision)
            return events, (session, decision)

        state = None if known is None else AssumedState(known)
        try:
            written = await self._unless_purged(
                at, self._writer.commit(at, choose, assumed=state, by=current_caller() or by)
            )
        except SessionBusy as busy:
            reason = "The session is too busy to write to now"
            raise ServiceUnavailable(reason, service="session.log") from busy
        before, decision = written.value
        if not isinstance(decision, tuple):
            return decision
        after = written.after.state
        if after.seq > before.seq and (written.met_others or _is_run(after)):
            await self._follower.follow(at)
        return Committed(before, decision, after)

    def _assume(self, at: Address) -> Versioned[Session] | None:
        """The session as its broadcasts tell, or as it was when it came to rest; None: read it.

        A session that rests is not followed, because only commands are written to it. If another
        ingest has one, the append conflicts, and from then on the session is followed.
        """
        if self._follower.follows(at):
            return self._follower.assume(at)
        known = self._cache.peek(at)
        return None if known is None or _is_run(known.state) else known

    async def _unless_purged(self, at: Address, step: Awaitable[Value]) -> Value:
        """Nobody finds a purged session, also while the unreadable part of its log is not erased yet."""
        try:
            return await step
        except RecordError:
            if await self.eventlog.log.end(at) == START:
                raise SessionNotFound(at.session_id) from None
            raise


def _is_run(session: Session) -> bool:
    """Whether a runner writes to the session, or soon will."""
    return session.execution.owner is not None or is_moving(session)


def _newer(
    one: Versioned[Session] | None, other: Versioned[Session] | None
) -> Versioned[Session] | None:
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda known: known.head.position)


def _require_complete(session: Session, decision: object) -> None:
    """Refuse to change a session in the middle of its import. Only a purge may end it there."""
    if not session.is_incomplete:
        return
    events = decision if isinstance(decision, tuple) else ()
    if not any(isinstance(event, SessionPurged) for event in events):
        reason = "The session is being imported: run the import again to its end, or purge it"
        raise Conflict(reason, session.id)


CONTEXT: Final = "command_context"
ContextDep: TypeAlias = Annotated[CommandContext, Context(CONTEXT)]
"""The context that the server of the verbs gives to each handler."""
