"""Keeps tasks running for ever, and knows what keeps them from their work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol, TypeAlias

import psycopg

from fairlead_eventlog.errors import AppendConflict, LogError
from fairlead_projector import metrics
from fairlead_projector.errors import Fenced
from fairlead_service.health import Probe

log = logging.getLogger(__name__)

Away: TypeAlias = Literal["postgres", "nats", "projector"]

RETRY_S_MIN: Final = 0.1
RETRY_S_MAX: Final = 2.0


class Task(Protocol):
    """Works until something fails; says `well` whenever nothing is away."""

    def __call__(self, *, well: Callable[[], None]) -> Awaitable[None]: ...


class Complaints:
    """What each task last stumbled over and has not got past."""

    def __init__(self) -> None:
        self._by_task: dict[str, tuple[Away, str]] = {}

    def note(self, task: str, away: Away, reason: str) -> None:
        self._by_task[task] = (away, reason)

    def clear(self, task: str) -> None:
        self._by_task.pop(task, None)

    def probe(self, away: Away) -> Probe:
        """The first complaint of that kind."""
        return lambda: next(
            (f"{task}: {why}" for task, (kind, why) in self._by_task.items() if kind == away), None
        )


async def keep(name: str, task: Task, complaints: Complaints) -> None:
    """Run a task for ever: when it fails, say why, wait a little longer each time, start again."""
    delay = RETRY_S_MIN

    def well() -> None:
        nonlocal delay
        delay = RETRY_S_MIN
        complaints.clear(name)

    while True:
        try:
            await task(well=well)
        except (Fenced, AppendConflict) as fenced:
            metrics.FENCED.inc()
            log.info("fenced", extra={"task": name, "reason": str(fenced)})
        except Exception as error:  # noqa: BLE001 - a process edge: report, wait, try again
            reason = f"{type(error).__name__}: {error}"
            complaints.note(name, _away(error), reason)
            log.warning("cannot work", extra={"task": name, "reason": reason})
        await asyncio.sleep(delay)
        delay = min(delay * 2, RETRY_S_MAX)


def _away(error: Exception) -> Away:
    match error:
        case psycopg.OperationalError():
            return "postgres"
        case LogError():
            return "nats"
        case _:
            return "projector"
