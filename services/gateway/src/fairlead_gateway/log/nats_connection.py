"""The gateway's connection to NATS. A background task connects, again and again if need be."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from fairlead_gateway.runtime import NatsPorts
from fairlead_service.supervise import Restarts, cancel_and_wait, supervise

log = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[NatsPorts]]


class NatsConnection:
    """Holds the current connection. HTTP is served before there is one."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._ports: NatsPorts | None = None
        self._restarts = Restarts(complaint="connecting")

    def current(self) -> NatsPorts | None:
        """The connection, or None while there is none."""
        return self._ports

    def complaint(self) -> str | None:
        """Why NATS cannot be used now; None if it can."""
        return self._restarts.complaint if self._ports is None else self._ports.complaint()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connect in the background, and reconnect until the block ends."""
        task = asyncio.create_task(
            supervise("connection to NATS", self._hold_open, restarts=self._restarts)
        )
        try:
            yield
        finally:
            await cancel_and_wait(task)

    async def _hold_open(self) -> None:
        try:
            async with self._connect() as self._ports:
                self._restarts.healthy()
                log.info("connected to NATS")
                await asyncio.Event().wait()
        finally:
            self._ports = None
