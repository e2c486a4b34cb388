"""Keeps tasks running for ever, and knows what keeps them from their work."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, Protocol, TypeAlias

import psycopg

from fairlead_eventlog.errors import AppendConflict, LogError
from fairlead_projector import metrics
from fairlead_projector.errors import Fenced
from fairlead_service.health import Probe
from fairlead_service.supervise import Restarts, describe, report_warning, supervise

log = logging.getLogger(__name__)

Away: TypeAlias = Literal["postgres", "nats", "projector"]


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
    """Run a task for ever. When it fails, note why and start it again after a growing pause."""
    restarts = Restarts()

    def well() -> None:
        restarts.healthy()
        complaints.clear(name)

    def report(name: str, error: Exception, again_s: float) -> None:
        if isinstance(error, Fenced | AppendConflict):
            metrics.FENCED.inc()
            log.info("task fenced: it starts again", extra={"task": name, "reason": str(error)})
        else:
            complaints.note(name, _away(error), describe(error))
            report_warning(name, error, again_s)

    await supervise(name, partial(task, well=well), restarts=restarts, report=report)


def _away(error: Exception) -> Away:
    match error:
        case psycopg.OperationalError():
            return "postgres"
        case LogError():
            return "nats"
        case _:
            return "projector"
