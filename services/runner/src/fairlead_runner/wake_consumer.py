"""Takes wakes and drains their sessions. A wake is a hint: the log says what there is to do."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_runner.drain import Drain
from fairlead_runner.metrics import DRAINING, DRAINS
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.staged_writer import OwnershipLost, StagedWriter
from fairlead_runner.subagents import tell_above
from fairlead_schema import subjects
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.supervise import Restarts, Work, report_defects, supervise
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.execution.retry import retry_wait_s
from fairlead_session.next_move import is_moving

log = logging.getLogger(__name__)

# How long a wake waits before somebody looks again at a session whose owner lives.
LATER_S: Final = 1.0
RETRY_S: Final = 1.0
TIMERS_MAX: Final = 100
# A session that fails this often in a row for a reason of ours is put aside with that reason.
DELIVERIES_MAX: Final = 5


class WakeConsumer:
    """Everything one runner is draining."""

    def __init__(self, context: RunnerContext) -> None:
        self._context = context
        self._jobs: dict[Address, Job] = {}
        self._next: dict[Address, Job] = {}
        self._drains: dict[Address, Drain] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = Slots(context.settings.config.runner.sessions_max)
        self._timer_slots = Slots(TIMERS_MAX)
        self._leaving = False

    async def run(self) -> None:
        """Take wakes for ever."""
        await self._supervise("taking wakes", self._take)

    async def heartbeat(self) -> None:
        """Keep every held wake in progress for ever, so that nobody else is given it."""
        await self._supervise("keeping wakes", self._keep)

    async def fire_timers(self) -> None:
        """Wake the sessions whose timers have come, for ever."""
        await self._supervise("ringing timers", self._due)

    async def _supervise(self, name: str, work: Work) -> None:
        restarts = Restarts(pause_s=RETRY_S, pause_s_max=RETRY_S)
        await supervise(name, work, restarts=restarts, report=report_defects(LogError))

    async def _take(self) -> None:
        async for job in self._context.eventlog.wakes.take(self._slots):
            task = asyncio.create_task(self._on_wake(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._context.settings.config.runner.wake_heartbeat_s)
            await self._keep_all()

    async def _keep_all(self) -> None:
        for job in (*self._jobs.values(), *self._next.values()):
            with suppress(LogError):
                await job.extend()

    async def _due(self) -> None:
        eventlog = self._context.eventlog
        async for job in eventlog.timers.take_due(self._timer_slots):
            async with job:
                await eventlog.wakes.wake(subjects.address(job.subject))
                await job.ack()

    def nudge(self, at: Address) -> None:
        """Somebody wrote something that the session's drain should see now."""
        if at in self._drains:
            self._drains[at].nudge()

    async def shutdown(self) -> None:
        """Finish the turns under way within the grace time, release, and hand over."""
        self._leaving = True
        for drain in self._drains.values():
            drain.shutdown()
        if self._tasks:
            grace_s = self._context.settings.config.runner.grace_s
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=grace_s)
        for job in self._next.values():
            with suppress(LogError):
                await job.retry_later(0.0)

    async def _on_wake(self, job: Job) -> None:
        """Serve a wake, then any newer wake of its session, all in the slot of the first."""
        async with job:
            at = subjects.address(job.subject)
            held = self._jobs.get(at)
            if held is None:
                wake: Job | None = job
                while wake is not None:
                    await self._serve_wake(at, wake)
                    wake = self._next.pop(at, None)
            elif job.sequence != held.sequence:
                # A newer wake came just as the drain acknowledged its own: it is served right after.
                # A redelivery of the wake being served says nothing new.
                self._next[at] = job

    async def _serve_wake(self, at: Address, job: Job) -> None:
        self._jobs[at] = job
        DRAINING.set(len(self._jobs))
        try:
            end = await self._ended(at, job)
            while end == "unavailable" and not self._leaving:
                # Others leave alone what a living runner owns: it is ours to go on with.
                await asyncio.sleep(RETRY_S)
                end = await self._ended(at, job)
            DRAINS.labels(end).inc()
        finally:
            self._jobs.pop(at, None)
            self._drains.pop(at, None)
            DRAINING.set(len(self._jobs))

    async def _ended(self, at: Address, job: Job) -> str:
        """Serve one wake; the answer says how it ended."""
        try:
            return await self._serve(at, job)
        except OwnershipLost:
            log.warning(
                "another runner owns the session: drain ends", extra={"session_id": at.session_id}
            )
            return "fenced"
        except CommitTooLarge as error:
            # No outage: it would never fit. The session rests, and its reason says so.
            log.warning("cannot be recorded", extra=_why(at, error))
            await self._let_go(at, str(error))
            await self._give_up(at, job, str(error))
            return "unrecordable"
        except LogError as error:
            log.warning("drain stopped", extra=_why(at, error))
            return "unavailable"
        except RecordError as error:
            log.warning("session cannot be read", extra=_why(at, error))
            await self._give_up(at, job, str(error))
            return "unreadable"
        except Exception as error:
            log.exception("drain failed", extra={"session_id": at.session_id})
            if job.deliveries >= DELIVERIES_MAX:
                reason = f"{type(error).__name__}: {error}"
                await self._let_go(at, reason)
                await self._give_up(at, job, reason)
            return "defect"

    async def _serve(self, at: Address, job: Job) -> str:
        known = await self._context.sessions.load(at)
        if known.state.profile is None:
            await job.ack()
            return "unknown"
        wait_s = retry_wait_s(known.state, now_ms=ids.now_ms())
        if 0 < wait_s <= LATER_S:
            # Its timer rang by another clock than ours: this may be the only wake that comes.
            await job.retry_later(wait_s)
            return "early"
        writer = StagedWriter(at, known, self._context.session_writer)
        drain = Drain(self._context, writer)
        if self._leaving:
            drain.shutdown()
        self._drains[at] = drain
        if not await self._drained(drain, job):
            await job.retry_later(LATER_S)
            return "left"
        await self._rest(at, job, writer)
        return "rested"

    async def _rest(self, at: Address, job: Job, writer: StagedWriter) -> None:
        """After the release: give up the wake, look once more, and wake again if there is work."""
        await job.ack()
        before = writer.known.head
        await writer.reload()
        moved = writer.known.head != before
        rested = writer.durable.execution.rested
        # What came during the cleanup of an interrupt had its wake refused by the one just given up.
        look = moved or (rested is not None and REST_RULES[rested].ends_interrupt)
        work = rested == "handover" or (look and is_moving(writer.durable))
        if work and writer.durable.execution.owner is None:
            await self._context.eventlog.wakes.wake(at)
        await self._snapshot(at, writer)
        with suppress(LogError, RecordError):  # A hint: the call looks for itself too, only later.
            context = self._context
            await tell_above(
                context.eventlog, context.sessions, at, writer.durable, pool=context.pool
            )

    async def _snapshot(self, at: Address, writer: StagedWriter) -> None:
        every = self._context.settings.config.runner.snapshot_events
        if writer.durable.seq // every > writer.opened_seq // every:
            with suppress(LogError):
                await self._context.sessions.save_snapshot(at, writer.known)

    async def _drained(self, drain: Drain, job: Job) -> bool:
        try:
            return await drain.run()
        except asyncio.CancelledError:
            with suppress(LogError):
                await job.retry_later(0.0)
            raise

    async def _let_go(self, at: Address, reason: str) -> None:
        """Nobody else takes what a living runner owns: release it. The defect may strike here too."""
        try:
            if at in self._drains:
                await self._drains[at].let_go(reason)
        except Exception:
            log.exception("cannot let go", extra={"session_id": at.session_id})

    async def _give_up(self, at: Address, job: Job, reason: str) -> None:
        """A session that cannot be read, or go on, stops with a visible reason; it never loops."""
        with suppress(LogError):
            await self._context.eventlog.dead_letters.add("session", subjects.log(at), b"", reason)
            await job.ack()


def _why(at: Address, error: Exception) -> dict[str, str]:
    return {"session_id": at.session_id, "reason": str(error)}
