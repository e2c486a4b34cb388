"""Watches the schedules of all tenants, and starts each run at its time."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_hooks import metrics
from fairlead_hooks.noted_states import NotedStates
from fairlead_hooks.record_reader import Key, RecordReader
from fairlead_hooks.schedules.claim import Claim, RunClaims, handled_until
from fairlead_hooks.schedules.run import RunSender, RunUnanswered
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleState
from fairlead_service.ids import now_ms
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.schedules.due_times import TimingInvalid, next_due

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """When to look at a schedule; None: never, unless it changes."""

    look_at: int | None


class ScheduleClock:
    """The schedules of this process. Every process has all of them, and claims say who runs one."""

    def __init__(
        self, eventlog: EventLog, claims: RunClaims, sender: RunSender, *, refresh_s: float
    ) -> None:
        self._eventlog = eventlog
        self._claims = claims
        self._sender = sender
        self._refresh_s = refresh_s
        self._reader = RecordReader(ScheduleRecord, ScheduleState)
        self._states = NotedStates(eventlog.hook_states, eventlog.schedules, "sch_")
        self._entries: dict[Key, _Entry] = {}
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Follow the registrations and the time for ever."""
        await self._eventlog.schedules.watch(lambda _tenant: self._note_change())
        self._changed.set()
        refreshed_at = 0
        while True:
            if self._changed.is_set() or now_ms() - refreshed_at > self._refresh_s * 1000:
                self._changed.clear()
                await self._refresh()
                refreshed_at = now_ms()
            self._start_due()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._woken.wait()
            self._woken.clear()

    async def close(self) -> None:
        """End runs that have no answer yet: another process repeats them under the same ids."""
        await cancel_and_wait(*self._running.values())

    def _note_change(self) -> None:
        self._changed.set()
        self._woken.set()

    async def _refresh(self) -> None:
        registered = await self._eventlog.schedules.get_all_tenants()
        states = await self._states.load(registered)
        entries: dict[Key, _Entry] = {}
        for key, record, state in self._reader.read(registered, states):
            if record.paused:
                continue
            try:
                look_at = next_due(record.timing, handled_until(record, state))
            except TimingInvalid as error:
                self._reader.report(key, registered[key[0]][key[1]], str(error))
            else:
                entries[key] = _Entry(look_at)
        self._entries = entries
        metrics.SCHEDULES.set(len(entries))

    def _pause_s(self) -> float:
        now = now_ms()
        times = [
            entry.look_at
            for key, entry in self._entries.items()
            if entry.look_at is not None and key not in self._running
        ]
        soonest = min(times, default=None)
        return self._refresh_s if soonest is None else min(self._refresh_s, (soonest - now) / 1000)

    def _start_due(self) -> None:
        now = now_ms()
        for key, entry in self._entries.items():
            if entry.look_at is None or entry.look_at > now or key in self._running:
                continue
            task = asyncio.create_task(self._handle(key, entry))
            self._running[key] = task
            task.add_done_callback(partial(self._end, key))

    def _end(self, key: Key, _task: asyncio.Task[None]) -> None:
        self._running.pop(key, None)
        self._woken.set()

    async def _handle(self, key: Key, entry: _Entry) -> None:
        """Run one schedule, if it is still there and still due. A change meanwhile has an entry of its own."""
        try:
            look_at = await self._run_once(key)
        except (LogError, RunUnanswered) as error:
            log.warning(
                "a schedule could not be run: it is tried again",
                extra={"schedule": key[1], "reason": str(error)},
            )
            look_at = now_ms() + 1000
        except Exception:
            log.exception(
                "a schedule could not be run: it is tried again", extra={"schedule": key[1]}
            )
            look_at = now_ms() + 10_000
        entry.look_at = look_at

    async def _run_once(self, key: Key) -> int | None:
        """Claim and run what is due. The answer is when to look again."""
        tenant, id_ = key
        found = await self._eventlog.schedules.read(tenant, id_)
        if found is None:
            return None
        # Whoever paused or changed it a moment ago is heard: the leader has the last word.
        record = ScheduleRecord.model_validate_json(found.value)
        if record.paused:
            return None
        claimed = await self._claims.take(tenant, record)
        if not isinstance(claimed, Claim):
            return claimed.at
        run = await self._sender.send(tenant, record, claimed.due)
        noted = await self._claims.finish(tenant, record, claimed, run)
        if noted == "noted":
            metrics.RUNS.labels(run.outcome).inc()
            metrics.LATE.observe(max(0.0, (run.time - run.due) / 1000))
        if run.outcome == "refused":
            reason = "" if run.error is None else run.error.message
            log.warning(
                "the prompt of a schedule was refused: the schedule stays",
                extra={"schedule": id_, "due": run.due, "reason": reason},
            )
        return next_due(record.timing, claimed.due)
