"""Consumes wakes, keeps them in progress while their sessions drain, and fires timers."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.slots import Slots
from fairlead_runner.metrics import DRAINING
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.wake_handler import WakeHandler
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service.supervise import Restarts, Work, report_defects, supervise

log = logging.getLogger(__name__)

TIMERS_MAX: Final = 100


class WakeConsumer:
    """All wakes that one runner serves. At most one drain runs per session."""

    def __init__(self, context: RunnerContext) -> None:
        self._context = context
        self._handler = WakeHandler(context)
        self._serving: dict[Address, Job] = {}
        self._newer: dict[Address, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer_slots = Slots(TIMERS_MAX)

    async def run(self) -> None:
        """Consume wakes until cancelled."""
        await self._supervise("wake consumer", self._consume)

    async def heartbeat(self) -> None:
        """Keep every taken wake in progress until cancelled, so that no other runner gets it."""
        await self._supervise("wake heartbeat", self._beat)

    async def fire_timers(self) -> None:
        """Wake the sessions whose timers are due, until cancelled."""
        await self._supervise("timers", self._fire_due)

    def nudge(self, nudge: Nudge) -> None:
        """Make the session's drain look at the log now."""
        self._handler.nudge(nudge)

    async def shutdown(self) -> None:
        """Finish the current turns within the grace time, release the sessions, return the wakes."""
        self._handler.shutdown()
        if self._tasks:
            grace_s = self._context.settings.config.runner.grace_s
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=grace_s)
        await self._handler.titles.shutdown()
        for job in self._newer.values():
            with suppress(LogError):
                await job.retry_later(0.0)

    async def _supervise(self, name: str, work: Work) -> None:
        pause_s = self._context.settings.timings.log_retry_s
        restarts = Restarts(pause_s=pause_s, pause_s_max=pause_s)
        await supervise(name, work, restarts=restarts, report=report_defects(LogError))

    async def _consume(self) -> None:
        async for job in self._context.eventlog.wakes.take(self._context.places):
            task = asyncio.create_task(self._on_wake(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _on_wake(self, job: Job) -> None:
        """Serve a wake, then any newer wake of its session, all in the slot of the first."""
        async with job:
            at = subjects.address(job.subject)
            current = self._serving.get(at)
            if current is None:
                wake: Job | None = job
                while wake is not None:
                    await self._serve(at, wake)
                    wake = self._newer.pop(at, None)
            elif job.sequence != current.sequence:
                # A wake that comes just as the drain acknowledges its own is served right after it.
                # A redelivery of the current wake says nothing new.
                self._newer[at] = job
                self._handler.note_newer_wake(at)

    async def _serve(self, at: Address, job: Job) -> None:
        self._serving[at] = job
        DRAINING.set(len(self._serving))
        try:
            await self._handler.handle(at, job)
        finally:
            self._serving.pop(at, None)
            DRAINING.set(len(self._serving))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._context.settings.config.runner.wake_heartbeat_s)
            for job in (*self._serving.values(), *self._newer.values()):
                with suppress(LogError):
                    await job.extend()

    async def _fire_due(self) -> None:
        eventlog = self._context.eventlog
        async for job in eventlog.timers.take_due(self._timer_slots):
            async with job:
                try:
                    await eventlog.wakes.wake(subjects.address(job.subject))
                    await job.ack()
                except LogError as error:
                    log.warning(
                        "timer could not wake its session: the timer comes again",
                        extra={"subject": job.subject, "reason": str(error)},
                    )
