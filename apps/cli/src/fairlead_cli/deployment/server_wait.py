"""Waits for nats-servers that do not answer yet: they start, or elect their leaders."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from fairlead_eventlog.errors import CredentialsRefused, LogUnavailable, ServerUnfit, SubjectRefused

PAUSE_S: Final = 1.0
Answer = TypeVar("Answer")


async def repeat_until_available(
    attempt: Callable[[], Awaitable[Answer]], wait_s: float, report: Callable[[str], None]
) -> Answer:
    """Try again while the servers do not answer. A refused key or a wrong server does not get better. Raises LogError."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return await attempt()
        except (CredentialsRefused, ServerUnfit, SubjectRefused):
            raise
        except LogUnavailable as error:
            if time.monotonic() > deadline:
                raise
            report(str(error))
            await asyncio.sleep(PAUSE_S)
