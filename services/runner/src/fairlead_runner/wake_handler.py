"""Serves one wake: drains its session. A wake is a hint: the log says what there is to do."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.quotas.running_quota import QuotaWait
from fairlead_eventlog.replicas.positions import parse_carried_commit, parse_position
from fairlead_eventlog.session_cache import Versioned
from fairlead_runner.drain.drain import Drain
from fairlead_runner.drain.staged_writer import OwnershipLost, StagedWriter
from fairlead_runner.metrics import DRAINS
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.titles import Titles
from fairlead_runner.wake_end import end_wake
from fairlead_schema import subjects
from fairlead_schema.record import NewerCommit, RecordError
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.held_work import hold_s
from fairlead_service.logs import add_fields, log_with
from fairlead_service.quota_metrics import QUOTA_REACHED
from fairlead_service.traces import names
from fairlead_service.traces.tracer import (
    NO_SPAN,
    TraceSpan,
    current_span,
    is_tracing,
    open_consumer_span,
)
from fairlead_session.execution.retry import retry_wait_s
from fairlead_session.next_move import starts_work
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

# After so many drains in a row that failed by a defect, a session rests as failed and is a dead letter.
# Deliveries do not count: a wake that waits for its turn is put back any number of times.
DEFECTS_MAX: Final = 5
DEFECTIVE_SESSIONS_MAX: Final = 4096


class WakeHandler:
    """Drains the sessions of wakes for one runner."""

    def __init__(self, context: RunnerContext) -> None:
        self._context = context
        self.titles = Titles(context)
        self._drains: dict[Address, Drain] = {}
        self._newer_wakes: dict[Address, asyncio.Event] = {}
        self._defects: Counter[Address] = Counter()
        self._shutting_down = False

    def nudge(self, nudge: Nudge) -> None:
        """Make the session's drain look at the log now."""
        if nudge.at in self._drains:
            self._drains[nudge.at].nudge(nudge)

    def note_newer_wake(self, at: Address) -> None:
        """Remember that this runner has the session's next wake, to serve it after the current one."""
        if at in self._newer_wakes:
            self._newer_wakes[at].set()

    def shutdown(self) -> None:
        """Let every drain finish its current turn and hand its session over."""
        self._shutting_down = True
        for drain in self._drains.values():
            drain.shutdown()

    async def handle(self, at: Address, job: Job) -> None:
        """Serve a wake until its drain has ended in some way, and count the way."""
        self._newer_wakes[at] = asyncio.Event()
        try:
            with log_with(tenant=at.tenant, session_id=at.session_id), _open_span(job) as span:
                end = await self._drain_until_ended(at, job)
                span.set({names.END: end})
            DRAINS.labels(end).inc()
        finally:
            self._drains.pop(at, None)
            self._newer_wakes.pop(at, None)

    async def _drain_until_ended(self, at: Address, job: Job) -> str:
        end = await self._try_drain(at, job)
        while end == "unavailable" and not self._shutting_down:
            # No other runner takes a session whose owner lives, so this one has to go on.
            await asyncio.sleep(self._context.settings.timings.log_retry_s)
            end = await self._try_drain(at, job)
        if end == "rested":
            self._defects.pop(at, None)
        return end

    async def _try_drain(self, at: Address, job: Job) -> str:
        """Drain once. The answer says how the drain ended, for the metric."""
        try:
            return await self._drain(at, job)
        except OwnershipLost:
            log.warning("another runner owns the session: drain ends", extra=_fields(at))
            return "fenced"
        except CommitTooLarge as error:
            # A later try would be as large: the session rests with this reason.
            log.warning("event too large for the log: session rests", extra=_fields(at, error))
            await self._give_up(at, str(error))
            await self._dead_letter(at, job, str(error))
            return "unrecordable"
        except LogError as error:
            log.warning("log unavailable: drain tries again", extra=_fields(at, error))
            return "unavailable"
        except NewerCommit as error:
            return await self._hold(at, job, error)
        except RecordError as error:
            log.warning(
                "session cannot be read: its wake becomes a dead letter", extra=_fields(at, error)
            )
            await self._dead_letter(at, job, str(error))
            return "unreadable"
        except Exception as error:
            log.exception("drain failed: its wake comes again", extra=_fields(at))
            await self._note_defect(at, job, f"{type(error).__name__}: {error}")
            return "defect"

    async def _drain(self, at: Address, job: Job) -> str:
        """Drain the session, and acknowledge its wake or return it for later."""
        context = self._context
        versioned = await self._load(at, job)
        if versioned.state.profile is None:
            await job.ack()
            return "unknown"
        add_fields(principal=versioned.state.profile.created_by)
        _link_earlier_work(versioned.state)
        owned_retry_s = context.settings.timings.owned_retry_s
        wait_s = retry_wait_s(versioned.state, now_ms=ids.now_ms())
        if 0 < wait_s <= owned_retry_s:
            # The timer fired by a clock that is ahead of ours: no other wake may follow.
            await job.retry_later(wait_s)
            return "early"
        writer = StagedWriter(at, versioned, context.session_writer)
        if not starts_work(versioned.state):
            return await self._drain_session(at, job, writer)
        # A session works for the principal that created it, whoever prompts in it.
        principal = versioned.state.profile.created_by
        wait = await context.turn_quota.take(at.tenant, at, principal)
        if wait is not None:
            return await self._wait_for_quota(at, job, wait)
        try:
            return await self._drain_session(at, job, writer)
        finally:
            context.turn_quota.release(at.tenant, at, principal)

    async def _load(self, at: Address, job: Job) -> Versioned[Session]:
        """The session, at least as far as its wake names; without a position, to the leader's end.

        Nobody says of a session that it does not exist before the leader of the log does.
        """
        sessions, position = self._context.sessions, parse_position(job.payload)
        if position is None:
            return await sessions.load_confirmed(at)
        versioned = self._continue_cached(at, job, position)
        if versioned is None:
            versioned = await sessions.load(at, reach=position)
        if versioned.state.profile is None:
            return await sessions.confirm(at, versioned)
        return versioned

    def _continue_cached(self, at: Address, job: Job, position: int) -> Versioned[Session] | None:
        """The session that this runner has, with the commit of a new wake; None: it must be read.

        Whoever had this wake before may have written since.
        """
        sessions = self._context.sessions
        cached, carried = sessions.peek(at), parse_carried_commit(job.payload)
        if cached is None or job.deliveries > 1:
            return None
        if cached.head.position == position:
            return cached
        return None if carried is None else sessions.fold_next(at, carried)

    async def _wait_for_quota(self, at: Address, job: Job, wait: QuotaWait) -> str:
        """Return the wake for later. Other sessions and other tenants go on meanwhile."""
        QUOTA_REACHED.labels(wait.reached.name).inc()
        if job.deliveries == 1:
            extra = {**_fields(at), "tenant": at.tenant, "reason": wait.reached.sentence}
            log.info("quota of turns reached: the wake comes again", extra=extra)
        await job.retry_later(wait.delay_s)
        return "over-quota"

    async def _hold(self, at: Address, job: Job, error: NewerCommit) -> str:
        """Return the wake, so that a runner of the release that wrote the session can take it."""
        again_s = hold_s(job.deliveries)
        extra = {**_fields(at, error), "again_s": again_s}
        log.warning("session of a newer release: its wake is left to newer runners", extra=extra)
        with suppress(LogError):
            await job.retry_later(again_s)
        return "newer"

    async def _drain_session(self, at: Address, job: Job, writer: StagedWriter) -> str:
        drain = Drain(self._context, writer)
        if self._shutting_down:
            drain.shutdown()
        self._drains[at] = drain
        if not await self._run(drain, job):
            await job.retry_later(self._context.settings.timings.owned_retry_s)
            return "left"
        await end_wake(self._context, job, writer, self._newer_wakes[at], self.titles)
        return "rested"

    async def _run(self, drain: Drain, job: Job) -> bool:
        try:
            return await drain.run()
        except asyncio.CancelledError:
            with suppress(LogError):
                await job.retry_later(0.0)
            raise

    async def _note_defect(self, at: Address, job: Job, reason: str) -> None:
        """Let the wake come again. After too many defects its session stops."""
        self._defects[at] += 1
        if self._defects[at] < DEFECTS_MAX:
            if len(self._defects) > DEFECTIVE_SESSIONS_MAX:
                self._defects.clear()
            return
        del self._defects[at]
        await self._give_up(at, reason)
        await self._dead_letter(at, job, reason)

    async def _give_up(self, at: Address, reason: str) -> None:
        """Release the session, because no other runner takes it while this one lives."""
        try:
            if at in self._drains:
                await self._drains[at].give_up(reason)
        except Exception:
            log.exception(
                "session cannot be released: it waits for another runner", extra=_fields(at)
            )

    async def _dead_letter(self, at: Address, job: Job, reason: str) -> None:
        """Stop a session that cannot go on, with a visible reason, instead of trying for ever."""
        with suppress(LogError):
            await self._context.eventlog.dead_letters.add("session", subjects.log(at), b"", reason)
            await job.ack()


def _open_span(job: Job) -> TraceSpan:
    """The span of a wake, below the span of whoever woke the session."""
    if not is_tracing():
        return NO_SPAN
    waited_ms = max(0, ids.now_ms() - job.stored_ms)
    attributes = {names.WAKE_WAIT_MS: waited_ms, names.DELIVERIES: job.deliveries}
    return open_consumer_span(names.DRAIN, job.trace, attributes)


def _link_earlier_work(session: Session) -> None:
    """Link to the trace of a turn that another owner began, or that waited while the session was parked."""
    attempt = session.turn.attempt
    if attempt is not None:
        span = current_span()
        span.link(attempt.trace)
        span.set({names.PRINCIPAL: session.profile.created_by if session.profile else None})


def _fields(at: Address, error: Exception | None = None) -> dict[str, str]:
    fields = {"session_id": at.session_id}
    return fields if error is None else {**fields, "reason": str(error)}
