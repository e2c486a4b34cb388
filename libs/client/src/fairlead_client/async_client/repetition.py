"""Sends a request until somebody answers it."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead_client.async_client.runtime import sleep
from fairlead_client.deadline import Deadline
from fairlead_client.errors import ClientError
from fairlead_client.retry_policy import is_passing, pause_s
from fairlead_schema.errors import Refused, Unauthorized

Answer = TypeVar("Answer")


async def repeat(
    send: Callable[[], Awaitable[Answer]],
    *,
    is_repeatable: bool,
    patience_s: float | None,
    deadline: Deadline,
    renew: Callable[[], Awaitable[bool]],
) -> Answer:
    """The first answer, within the patience and the caller's time. Raises the last error, and NotInTime.

    After a refusal of the credentials the request is sent once more, if `renew` has others.
    """
    began, failures, renewed = time.monotonic(), 0, False
    while True:
        try:
            return await send()
        except Unauthorized:
            if renewed or not await renew():
                raise
            renewed = True
            continue
        except (ClientError, Refused) as error:
            if not is_passing(error, is_repeatable=is_repeatable):
                raise
            pause = pause_s(failures, error)
            deadline.check(pause_s=pause, cause=error)
            if patience_s is not None and time.monotonic() - began + pause > patience_s:
                raise
        failures += 1
        await sleep(pause)
