"""Says that the server of a stream is away, and that it is back: until then nothing would move."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.errors import TokenUnavailable
from fairlead_schema.errors import Unauthorized

LOOK_S: Final = 0.2
SILENT_S: Final = 1.0
"""A gateway that starts again is back sooner, and no news."""
AWAY: Final = "the server is away: waiting for it (Ctrl-C leaves, and the session goes on)"
BACK: Final = "the server is back"


@asynccontextmanager
async def absence_notes(
    connection: AsyncHttpConnection, note: Callable[[str], None]
) -> AsyncIterator[None]:
    """Note when the stream of a connection is interrupted, and when it is open again."""
    watch = asyncio.create_task(_watch(connection, note))
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch(connection: AsyncHttpConnection, note: Callable[[str], None]) -> None:
    away_s, is_noted = 0.0, False
    while True:
        await asyncio.sleep(LOOK_S)
        away_s = away_s + LOOK_S if _is_away(connection) else 0.0
        if is_noted != (away_s >= SILENT_S):
            is_noted = not is_noted
            note(AWAY if is_noted else BACK)


def _is_away(connection: AsyncHttpConnection) -> bool:
    """Whether a stream that was open waits for its server. A server that refuses a key is there."""
    failure = connection.failure
    is_interrupted = connection.was_open and failure is not None
    return is_interrupted and not isinstance(failure, Unauthorized | TokenUnavailable)
