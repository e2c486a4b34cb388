"""Holds tasks back until Postgres has the tables that they need."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import psycopg

from fairlead_projector import database
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import try_migrate
from fairlead_projector.task_supervisor import Task
from fairlead_service.postgres_failure import explain_postgres_failure

log = logging.getLogger(__name__)

POLL_S: Final = 1.0


class MigrationGate:
    """Opens once the database has every migration of this release. A role that may migrates itself."""

    def __init__(self, dsn: str, *, poll_s: float = POLL_S) -> None:
        self._dsn = dsn
        self._poll_s = poll_s
        self._opened = asyncio.Event()
        self._reason: str | None = "the tables in Postgres were not looked for yet"

    def complaint(self) -> str | None:
        """What the gate waits for; None once it is open."""
        return self._reason

    async def open(self) -> None:
        """Look for the tables until they are there. Only a new reason to wait is logged."""
        while (reason := await self._find_reason()) is not None:
            if reason != self._reason:
                extra = {"reason": reason}
                log.warning("projector waits for its tables: it starts with them", extra=extra)
            self._reason = reason
            await asyncio.sleep(self._poll_s)
        self._reason = None
        self._opened.set()

    def hold(self, task: Task) -> Task:
        """A task that begins when the gate is open."""

        async def run(*, on_healthy: Callable[[], None]) -> None:
            await self._opened.wait()
            await task(on_healthy=on_healthy)

        return run

    async def _find_reason(self) -> str | None:
        try:
            async with await database.connect(self._dsn) as connection:
                await try_migrate(connection)
        except ProjectorError as error:
            return str(error)
        except psycopg.Error as error:
            return explain_postgres_failure(error)
        return None
