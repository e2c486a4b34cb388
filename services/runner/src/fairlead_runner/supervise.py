"""Work that a runner does for as long as it stands, whatever happens to it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from fairlead_eventlog.errors import LogError

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0


async def lasting(name: str, work: Callable[[], Awaitable[None]]) -> NoReturn:
    """Do it for ever. What stops it is told, an unexpected error with its trace; then it goes on."""
    while True:
        try:
            await work()
        except LogError as error:
            log.warning("%s stopped", name, extra={"reason": str(error)})
        except Exception:
            log.exception("%s stopped", name)
        await asyncio.sleep(RETRY_S)
