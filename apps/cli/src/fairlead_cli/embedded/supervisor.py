"""Keeps processes alive: starts them, restarts what dies, and stops all in order."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead_cli.embedded import child
from fairlead_cli.embedded.child import Command
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
"""Says why a process is not ready, or None when it is."""
Prepare: TypeAlias = Callable[[], Awaitable[Command]]
"""Makes ready what a start needs; asked again before each restart."""
Revive: TypeAlias = Callable[[], Awaitable[None]]
"""Puts back what a death took, once the process is there again."""
Progress: TypeAlias = Callable[[str], None]


async def nothing() -> None:
    """Most processes lose nothing when they die."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """How often a process died in a row, and hence how long its restart waits."""

    count: int = 0

    def after(self, lived_s: float) -> "Deaths":
        """One more death. A process that had settled starts a new row."""
        return Deaths(1 if lived_s >= SETTLED_S else self.count + 1)

    @property
    def delay_s(self) -> float:
        return float(min(DELAY_S_MIN * 2 ** max(self.count - 1, 0), DELAY_S_MAX))


class Kept:
    """One process that is kept alive until it is told to stop."""

    def __init__(
        self, name: str, index: int, prepare: Prepare, probe: Probe, *, revive: Revive = nothing
    ) -> None:
        self.name = name
        self.index = index
        self.deaths = Deaths()
        self.exit_code: int | None = None
        self._prepare = prepare
        self._probe = probe
        self._revive = revive
        self._whole = True
        self._command: Command | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def label(self) -> str:
        return f"{self.name}-{self.index}"

    @property
    def pid(self) -> int | None:
        """Its pid while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> None:
        """Start it and keep it. Raises what preparing raises."""
        await self._spawn()
        self._task = asyncio.create_task(self._keep())

    def kill(self, sig: int) -> None:
        """Send it a signal, as the world might."""
        if self.pid is not None:
            os.kill(self.pid, sig)

    def hurry(self) -> None:
        """Do not wait for a graceful end, now or later."""
        self._hurry.set()

    async def stop(self) -> None:
        """Stop it for good: ask, wait, insist."""
        self._stop.set()
        await self._end()
        if self._task is not None:
            await self._task

    async def ready(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until its probe is content. Raises ProcessFailed."""
        began, deaths_before = time.monotonic(), self.deaths.count
        while (reason := await self.complaint()) is not None:
            if self.deaths.count - deaths_before >= DEATHS_AT_START_MAX:
                raise self._failed(f"it died {self.deaths.count} times, {self._ended()}")
            if time.monotonic() - began > timeout_s:
                raise self._failed(f"not ready after {timeout_s:.0f} s: {reason}")
            await asyncio.sleep(POLL_S)

    async def complaint(self) -> str | None:
        """Why it is not ready; None when it is."""
        if self.pid is None or not self._whole:
            return "restarting"
        return await self._probe()

    async def _spawn(self) -> None:
        self._command = await self._prepare()
        self._process = await child.spawn(self._command)

    async def _keep(self) -> None:
        while not self._stop.is_set():
            assert self._process is not None, "it was started"
            began = time.monotonic()
            self.exit_code = await self._process.wait()
            if self._stop.is_set():
                return
            self._whole = False
            self.deaths = self.deaths.after(time.monotonic() - began)
            log.warning(
                "%s died (%s): restart in %.1f s", self.label, self._ended(), self.deaths.delay_s
            )
            await self._restart()

    async def _restart(self) -> None:
        """Start again after the back-off, for as long as it takes."""
        while not await self._stopped_within(self.deaths.delay_s):
            try:
                await self._spawn()
                break
            except (CommandError, OSError) as error:
                self.deaths = self.deaths.after(0)
                log.warning("%s cannot start: %s", self.label, error)
        if self._stop.is_set():
            # It may have come up while it was being stopped.
            await self._end()
            return
        await self._revived()

    async def _revived(self) -> None:
        """Put back what the death took, unless it dies or is stopped meanwhile: then that comes first."""
        assert self._process is not None, "it was just started"
        reviving = asyncio.ensure_future(self._revive())
        others = {
            asyncio.ensure_future(self._process.wait()),
            asyncio.ensure_future(self._stop.wait()),
        }
        await asyncio.wait({reviving, *others}, return_when=asyncio.FIRST_COMPLETED)
        self._whole = reviving.done()
        for task in (reviving, *others):
            task.cancel()
        await asyncio.gather(reviving, *others, return_exceptions=True)
        if self._whole:
            reviving.result()

    async def _stopped_within(self, delay_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), delay_s)
        return self._stop.is_set()

    async def _end(self) -> None:
        if self._process is not None and self._command is not None:
            await child.stop(self._process, self._command, hurry=self._hurry)

    def _ended(self) -> str:
        if self.exit_code is None or self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        known = {int(sig): sig.name for sig in signal.Signals}
        return known.get(-self.exit_code, f"signal {-self.exit_code}")

    def _failed(self, reason: str) -> ProcessFailed:
        assert self._command is not None, "it was started"
        return ProcessFailed(self.label, reason, self._command.log)


async def all_ready(
    processes: Iterable[Kept], progress: Progress, *, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait for all side by side, and say what takes long. Raises ProcessFailed."""
    waiting = {kept.label for kept in processes}

    async def one(kept: Kept) -> None:
        await kept.ready(timeout_s=timeout_s)
        waiting.discard(kept.label)

    told = asyncio.create_task(_tell(waiting, progress))
    try:
        await together(one(kept) for kept in processes)
    finally:
        told.cancel()


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all side by side. The first failure ends the others before it is raised."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tell(waiting: Collection[str], progress: Progress) -> None:
    await asyncio.sleep(SLOW_S)
    while True:
        progress(f"waiting for {', '.join(sorted(waiting))}")
        await asyncio.sleep(REPEAT_S)


async def stop_all(processes: Iterable[Kept]) -> None:
    """Stop processes side by side."""
    await asyncio.gather(*(process.stop() for process in processes))
