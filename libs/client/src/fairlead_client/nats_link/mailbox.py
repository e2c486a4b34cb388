"""What NATS delivers on some subjects over one connection, until somebody takes it."""

import asyncio
from contextlib import suppress
from typing import Final, NamedTuple

from fairlead_client.errors import ClientError, ServerAway
from fairlead_schema.errors import Refused

MAILBOX_MAX: Final = 4096


class HeardMessage(NamedTuple):
    """One message."""

    subject: str
    data: bytes


class AsyncMailbox:
    """What came on some subjects over one connection."""

    def __init__(self) -> None:
        self._messages: list[HeardMessage] = []
        self._news = asyncio.Event()
        self._end: ClientError | Refused | None = None

    def put(self, message: HeardMessage) -> None:
        if len(self._messages) < MAILBOX_MAX:
            self._messages.append(message)
            self._news.set()
        else:
            self.end(ServerAway("nats", "this program reads too slowly", was_sent=True))

    def end(self, error: ClientError | Refused) -> None:
        """Nothing more comes."""
        self._end = self._end or error
        self._news.set()

    async def take(self, timeout_s: float) -> list[HeardMessage]:
        """What has come; if nothing has, wait for it so long. Raises what ended the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        if self._end is not None:
            raise self._end
        self._news.clear()
        taken, self._messages = self._messages, []
        return taken
