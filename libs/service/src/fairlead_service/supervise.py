"""Runs work for the life of a process: restarts it after a failure, and waits until it ends."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeAlias

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Restarts:
    """When work starts again, and why it does not run now. The pause doubles with each failure."""

    pause_s: float = 0.1
    pause_s_max: float = 2.0
    jitter: float = 0.0
    """The part of a pause that varies, so that many do not start again at the same moment."""
    steady_s: float = 60.0
    """Work that ran for this long was healthy: its next pause is short again."""
    complaint: str | None = "starting"
    _next_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._next_s = self.pause_s

    def healthy(self) -> None:
        """The work runs: there is no complaint, and the next pause is short."""
        self.complaint = None
        self._next_s = self.pause_s

    def next_pause_s(self) -> float:
        """How long to wait before the next start."""
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, self.pause_s_max)
        return pause_s * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311


Report: TypeAlias = Callable[[str, Exception, float], None]
"""Says that the named work failed and starts again after so many seconds."""


def report_warning(name: str, error: Exception, again_s: float) -> None:
    """For failures that an operator expects: a dependency is away."""
    extra = {"reason": describe(error), "again_s": again_s}
    log.warning("%s failed: it starts again", name, extra=extra)


def report_defects(*expected: type[Exception]) -> Report:
    """Reports expected errors as warnings, and all others as errors with their trace."""

    def report(name: str, error: Exception, again_s: float) -> None:
        if isinstance(error, expected):
            report_warning(name, error, again_s)
        else:
            extra = {"again_s": again_s}
            log.error("%s failed: it starts again", name, extra=extra, exc_info=error)

    return report


async def supervise(
    name: str,
    work: Work,
    *,
    restarts: Restarts | None = None,
    report: Report = report_warning,
    stop: asyncio.Event | None = None,
) -> None:
    """Run work until it is cancelled or `stop` is set; start it again whenever it ends or fails."""
    restarts = restarts or Restarts()
    while stop is None or not stop.is_set():
        began = monotonic()
        try:
            await work()
            failure = None
        except Exception as error:  # noqa: BLE001 - an edge: report, wait, start again
            failure = error
        if stop is not None and stop.is_set():
            if failure is not None:
                _report_unclean_stop(name, failure)
            return
        if monotonic() - began > restarts.steady_s:
            restarts.healthy()
        pause_s = restarts.next_pause_s()
        if failure is not None:
            restarts.complaint = describe(failure)
            report(name, failure, round(pause_s, 2))
        await _pause(pause_s, stop)


def _report_unclean_stop(name: str, failure: Exception) -> None:
    """One plain line: a dependency is mostly away, and what was not written is found by others."""
    extra = {"reason": describe(failure)}
    log.warning("%s did not stop cleanly", name, extra=extra)
    log.debug("%s did not stop cleanly", name, exc_info=failure)


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until all have ended. A task that fails on its way out is logged."""
    running = {task for task in tasks if not task.done()}
    for task in running:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for task, result in zip(tasks, results, strict=True):
        if task in running and isinstance(result, Exception):
            log.warning(
                "task failed while it was cancelled", extra={"task": _name(task)}, exc_info=result
            )


def describe(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


def _name(task: asyncio.Future[Any]) -> str:
    """The name of a task and of its coroutine. Asyncio only numbers a task without a name."""
    if not isinstance(task, asyncio.Task):
        return repr(task)
    return f"{task.get_name()}: {getattr(task.get_coro(), '__qualname__', 'unknown')}"


async def _pause(seconds: float, stop: asyncio.Event | None) -> None:
    if stop is None:
        await asyncio.sleep(seconds)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
