"""The gateway's connection to NATS: made in the background, made again until it holds."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, TypeAlias

from fairlead_gateway.runtime import Medium

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1
RETRY_S_MAX: Final = 2.0

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Medium]]


class Link:
    """Holds the present medium. HTTP is up before there is one, and says what is away."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._medium: Medium | None = None
        self._complaint: str = "connecting"

    def now(self) -> Medium | None:
        """The medium, once there is one."""
        return self._medium

    def complaint(self) -> str | None:
        """Why NATS cannot be used now, if so."""
        return self._complaint if self._medium is None else self._medium.complaint()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connecting in the background for as long as this is open."""
        task = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _keep(self) -> None:
        pause_s = RETRY_S
        while True:
            try:
                async with self._connect() as self._medium:
                    log.info("connected to NATS")
                    await asyncio.Event().wait()
            except Exception as error:  # noqa: BLE001 - a process edge: report, wait, try again
                self._complaint = str(error) or type(error).__name__
                log.warning("cannot connect to NATS", extra={"reason": self._complaint})
            finally:
                self._medium = None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)
