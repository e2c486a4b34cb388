"""Supervises processes: starts them, restarts a process that dies, stops them."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.child_process import ChildProcess, ProcessSpec, Spawn
from fairlead_cli.errors import CommandError, ProcessFailed

log = logging.getLogger(__name__)

DELAY_S_MIN: Final = 0.2
DELAY_S_MAX: Final = 5.0
SETTLED_S: Final = 10.0
DEATHS_AT_START_MAX: Final = 5
POLL_S: Final = 0.05
SLOW_S: Final = 2.0
REPEAT_S: Final = 5.0
START_TIMEOUT_S: Final = 60.0

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns why a process is not ready, or None when it is."""
Prepare: TypeAlias = Callable[[], Awaitable[ProcessSpec]]
"""Prepares a start and returns how to start; called again before each restart."""
Restore: TypeAlias = Callable[[], Awaitable[None]]
"""Restores the state that a process lost by its death, after each restart."""
Progress: TypeAlias = Callable[[str], None]


async def restore_nothing() -> None:
    """Do nothing: most processes lose no state when they die."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """The deaths of a process in a row, and the delay before its next restart."""

    count: int = 0

    def after(self, lived_s: float) -> "Deaths":
        """Count one more death. A process that lived long enough starts a new row."""
        return Deaths(1 if lived_s >= SETTLED_S else self.count + 1)

    @property
    def delay_s(self) -> float:
        return float(min(DELAY_S_MIN * 2 ** max(self.count - 1, 0), DELAY_S_MAX))


class SupervisedProcess:
    """One process that is restarted whenever it dies, until it is stopped."""

    def __init__(
        self,
        name: str,
        index: int,
        prepare: Prepare,
        probe: Probe,
        *,
        restore: Restore = restore_nothing,
        spawn: Spawn = child_process.spawn,
    ) -> None:
        self.name = name
        self.index = index
        self.deaths = Deaths()
        self.exit_code: int | None = None
        self._prepare = prepare
        self._probe = probe
        self._restore = restore
        self._spawn = spawn
        self._restored = True
        self._spec: ProcessSpec | None = None
        self._process: ChildProcess | None = None
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        return f"{self.name}-{self.index}"

    @property
    def pid(self) -> int | None:
        """The pid while the process runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def spec(self) -> ProcessSpec:
        """How the process was started last."""
        assert self._spec is not None, "the process was started"
        return self._spec

    async def start(self) -> None:
        """Start the process and supervise it. Raises the errors of `prepare`."""
        await self._start_process()
        self._task = asyncio.create_task(self._supervise())

    def kill(self, sig: int) -> None:
        """Send a signal to the process, if it runs."""
        if self.pid is not None:
            os.kill(self.pid, sig)

    def hurry(self) -> None:
        """Kill at once on this or the next stop, without the grace time."""
        self._hurry.set()

    async def stop(self) -> None:
        """Stop the process for good: signal, grace time, kill."""
        self._stop.set()
        await self._end()
        if self._task is not None:
            await self._task

    async def wait_ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the process is ready. Raises ProcessFailed."""
        start, deaths_before = time.monotonic(), self.deaths.count
        while (reason := await self.why_not_ready()) is not None:
            if self.deaths.count - deaths_before >= DEATHS_AT_START_MAX:
                raise self._start_failure(
                    f"it died {self.deaths.count} times, {self._exit_reason()}"
                )
            if time.monotonic() - start > timeout_s:
                raise self._start_failure(f"not ready after {timeout_s:.0f} s: {reason}")
            await asyncio.sleep(POLL_S)

    async def why_not_ready(self) -> str | None:
        """Why the process is not ready; None when it is."""
        if self.pid is None or not self._restored:
            return "restarting"
        return await self._probe()

    async def _start_process(self) -> None:
        self._spec = await self._prepare()
        self._process = await self._spawn(self._spec)

    async def _supervise(self) -> None:
        while not self._stop.is_set():
            assert self._process is not None, "it was started"
            start = time.monotonic()
            self.exit_code = await self._process.wait()
            if self._stop.is_set():
                return
            self._restored = False
            self.deaths = self.deaths.after(time.monotonic() - start)
            log.warning(
                "%s died (%s): restarting in %.1f s",
                self.label,
                self._exit_reason(),
                self.deaths.delay_s,
            )
            await self._restart()

    async def _restart(self) -> None:
        """Start the process again after the delay, and retry until a start succeeds."""
        while not await self._stopped_within(self.deaths.delay_s):
            try:
                await self._start_process()
                break
            except (CommandError, OSError) as error:
                self.deaths = self.deaths.after(0)
                log.warning(
                    "%s cannot start (%s): retrying in %.1f s",
                    self.label,
                    error,
                    self.deaths.delay_s,
                )
        if self._stop.is_set():
            # The process may have started while `stop` was called.
            await self._end()
            return
        await self._restore_lost()

    async def _restore_lost(self) -> None:
        """Restore the lost state. A new death or a stop ends the restoring early."""
        assert self._process is not None, "it was just started"
        restoring = asyncio.ensure_future(self._restore())
        others = {
            asyncio.ensure_future(self._process.wait()),
            asyncio.ensure_future(self._stop.wait()),
        }
        await asyncio.wait({restoring, *others}, return_when=asyncio.FIRST_COMPLETED)
        self._restored = restoring.done()
        for task in (restoring, *others):
            task.cancel()
        await asyncio.gather(restoring, *others, return_exceptions=True)
        if self._restored:
            restoring.result()

    async def _stopped_within(self, delay_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), delay_s)
        return self._stop.is_set()

    async def _end(self) -> None:
        if self._process is not None and self._spec is not None:
            await child_process.stop(self._process, self._spec, hurry=self._hurry)

    def _exit_reason(self) -> str:
        if self.exit_code is None or self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        names = {int(sig): sig.name for sig in signal.Signals}
        return names.get(-self.exit_code, f"signal {-self.exit_code}")

    def _start_failure(self, reason: str) -> ProcessFailed:
        assert self._spec is not None, "it was started"
        return ProcessFailed(self.label, reason, self._spec.log)


async def wait_all_ready(
    processes: Iterable[SupervisedProcess],
    progress: Progress,
    *,
    timeout_s: float = START_TIMEOUT_S,
) -> None:
    """Wait for all processes at once, and report the slow ones. Raises ProcessFailed."""
    waiting = {process.label for process in processes}

    async def wait_ready(process: SupervisedProcess) -> None:
        await process.wait_ready(timeout_s=timeout_s)
        waiting.discard(process.label)

    report = asyncio.create_task(_report_waiting(waiting, progress))
    try:
        await run_together(wait_ready(process) for process in processes)
    finally:
        report.cancel()


async def run_together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently. The first failure cancels the others and is then raised."""
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _report_waiting(waiting: Collection[str], progress: Progress) -> None:
    await asyncio.sleep(SLOW_S)
    while True:
        progress(f"waiting for {', '.join(sorted(waiting))}")
        await asyncio.sleep(REPEAT_S)


async def stop_all(processes: Iterable[SupervisedProcess]) -> None:
    """Stop processes concurrently."""
    await asyncio.gather(*(process.stop() for process in processes))
