"""All requests of a connection on one subscription and one timer."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import nats.errors

from fairlead_eventlog.jetstream.thin.deadlines import Deadlines, Waiter
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.jetstream.thin.thin_client import ThinClient

Receive: TypeAlias = Callable[[InboundMessage], None]

# Who answers one request sees its token, and must not guess that of another request.
_TOKEN_BYTES: Final = 12
_TOKENS_AT_ONCE: Final = 256


class RequestMux:
    """Sends requests with a token of their own each, and finds by it who waits for an answer."""

    def __init__(self, client: ThinClient) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[str, asyncio.Future[InboundMessage | None]] = {}
        self._receivers: dict[str, Receive] = {}
        self._tokens = _tokens()
        self._deadlines = Deadlines(_expire)
        self._is_closed = False
        self._prefix = ""

    async def open(self) -> None:
        """Subscribe the inbox for all answers. It is below the prefix that the grants allow."""
        self._prefix = f"{self._client.new_inbox()}."
        await self._client.subscribe_directly(f"{self._prefix}*", self.take)

    def close(self) -> None:
        """End every request that still waits: nobody will answer it."""
        self._is_closed = True
        self._deadlines.close()

    @property
    def outstanding(self) -> int:
        """How many requests and reply subjects are open."""
        return len(self._waiters) + len(self._receivers)

    async def request(
        self,
        subject: str,
        body: bytes,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> InboundMessage:
        """One request, one answer.

        Raises NoRespondersError and TimeoutError of nats-py, and what sending raises.
        """
        token = next(self._tokens)
        waiter: asyncio.Future[InboundMessage | None] = self._loop.create_future()
        self._waiters[token] = waiter
        due = self._deadlines.add(waiter, timeout_s)
        reply = self._prefix + token
        try:
            if not self._client.try_send(subject, body, reply=reply, headers=headers):
                async with asyncio.timeout(timeout_s):
                    await self._client.send(subject, body, reply=reply, headers=headers)
            answer = await waiter
        finally:
            self._waiters.pop(token, None)
            due.discard(waiter)
        if answer is None:
            raise nats.errors.ConnectionClosedError if self._is_closed else nats.errors.TimeoutError
        if answer.found_nobody:
            raise nats.errors.NoRespondersError
        return answer

    def open_reply_subject(
        self, receive: Receive, done: Waiter, timeout_s: float
    ) -> tuple[str, Callable[[], None]]:
        """A new reply subject for any number of answers, and the function that closes it.

        `done` gets None after the timeout, unless it is done before.
        """
        token = next(self._tokens)
        self._receivers[token] = receive
        due = self._deadlines.add(done, timeout_s)

        def close() -> None:
            self._receivers.pop(token, None)
            due.discard(done)

        return self._prefix + token, close

    def take(self, message: InboundMessage) -> None:
        """Give an answer to whoever waits for it. A late one finds nobody."""
        token = message.subject[len(self._prefix) :]
        waiter = self._waiters.get(token)
        if waiter is not None:
            if not waiter.done():
                waiter.set_result(message)
            return
        receive = self._receivers.get(token)
        if receive is not None:
            receive(message)


def _expire(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _tokens() -> Iterator[str]:
    size = 2 * _TOKEN_BYTES
    while True:
        digits = os.urandom(_TOKEN_BYTES * _TOKENS_AT_ONCE).hex()
        for start in range(0, len(digits), size):
            yield digits[start : start + size]
