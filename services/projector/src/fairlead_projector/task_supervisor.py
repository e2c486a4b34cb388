"""Restarts failed tasks, and remembers which dependency each failed task misses."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, Protocol, TypeAlias

import psycopg

from fairlead_eventlog.errors import AppendConflict, LogError
from fairlead_projector import metrics
from fairlead_projector.errors import ShardFenced
from fairlead_service.health import Probe
from fairlead_service.postgres_failure import explain_postgres_failure
from fairlead_service.supervise import Restarts, describe, report_warning, supervise

log = logging.getLogger(__name__)

Dependency: TypeAlias = Literal["postgres", "nats", "projector"]


class Task(Protocol):
    """Works until something fails. It calls `on_healthy` whenever its dependencies answer."""

    def __call__(self, *, on_healthy: Callable[[], None]) -> Awaitable[None]: ...


class Complaints:
    """The last failure of each task that has not recovered since."""

    def __init__(self) -> None:
        self._by_task: dict[str, tuple[Dependency, str]] = {}

    def note(self, task: str, dependency: Dependency, reason: str) -> None:
        self._by_task[task] = (dependency, reason)

    def clear(self, task: str) -> None:
        self._by_task.pop(task, None)

    def probe(self, dependency: Dependency) -> Probe:
        """A health probe that returns the first complaint about a dependency."""
        return lambda: next(
            (
                f"{task}: {reason}"
                for task, (missing, reason) in self._by_task.items()
                if missing == dependency
            ),
            None,
        )


async def keep_running(name: str, task: Task, complaints: Complaints) -> None:
    """Run a task for ever. After a failure, note the reason and restart it after a growing pause."""
    restarts = Restarts()

    def on_healthy() -> None:
        restarts.healthy()
        complaints.clear(name)

    def report(name: str, error: Exception, again_s: float) -> None:
        if isinstance(error, ShardFenced | AppendConflict):
            metrics.FENCED.inc()
            extra = {"task": name, "reason": str(error), "again_s": again_s}
            log.info("another projector took the shard: this one starts over", extra=extra)
        else:
            complaints.note(name, _dependency(error), _explain(error))
            report_warning(name, error, again_s)

    await supervise(name, partial(task, on_healthy=on_healthy), restarts=restarts, report=report)


def _explain(error: Exception) -> str:
    is_postgres = isinstance(error, psycopg.OperationalError)
    return explain_postgres_failure(error) if is_postgres else describe(error)


def _dependency(error: Exception) -> Dependency:
    match error:
        case psycopg.OperationalError():
            return "postgres"
        case LogError():
            return "nats"
        case _:
            return "projector"
