"""The gateway's connection to NATS: made in the background, made again until it holds."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from fairlead_gateway.runtime import Medium
from fairlead_service.supervise import Restarts, cancel_and_wait, supervise

log = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Medium]]


class Link:
    """Holds the present medium. HTTP is up before there is one, and says what is away."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._medium: Medium | None = None
        self._restarts = Restarts(complaint="connecting")

    def now(self) -> Medium | None:
        """The medium, once there is one."""
        return self._medium

    def complaint(self) -> str | None:
        """Why NATS cannot be used now, if so."""
        return self._restarts.complaint if self._medium is None else self._medium.complaint()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connecting in the background for as long as this is open."""
        task = asyncio.create_task(
            supervise("connection to NATS", self._hold_open, restarts=self._restarts)
        )
        try:
            yield
        finally:
            await cancel_and_wait(task)

    async def _hold_open(self) -> None:
        try:
            async with self._connect() as self._medium:
                self._restarts.healthy()
                log.info("connected to NATS")
                await asyncio.Event().wait()
        finally:
            self._medium = None
