"""A pull consumer in callback mode: several times faster than fetch, and it never hoards."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import orjson
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import Link

# The server ends a pull with one of these; "100" is a heartbeat.
_NOBODY: Final = "503"
_ENDED: Final = frozenset({"404", "408", "409", _NOBODY})


class Pull:
    """Pipelined pull requests on one consumer."""

    def __init__(
        self,
        link: Link,
        stream: str,
        consumer: str,
        *,
        capacity: Callable[[], int],
        expires_s: float,
    ) -> None:
        self._link = link
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._capacity = capacity
        self._expires_s = expires_s
        self._buffer: list[Msg] = []
        self._outstanding = 0
        self._changed = asyncio.Event()
        self._gone: str | None = None
        self._quiet_s = 0.0

    async def batches(self) -> AsyncIterator[list[Msg]]:
        """Everything that has arrived, as lists, for ever. Raises LogUnavailable when it ends."""
        # A delivery keeps its stream subject, so a pull needs a subscription of its own.
        reply = self._link.client.new_inbox()
        subscription = await self._link.client.subscribe(
            reply, cb=self._receive, pending_msgs_limit=0, pending_bytes_limit=0
        )
        forget = self._link.on_reconnect(self._start_over)
        try:
            while True:
                await self._ask(reply)
                if self._buffer:
                    batch, self._buffer = self._buffer, []
                    yield batch
                    continue
                if self._gone is not None:
                    raise LogUnavailable(self._gone)
                await self._wait()
        finally:
            forget()
            with suppress(Exception):
                await subscription.unsubscribe()

    def ask_again(self) -> None:
        """The capacity has grown: ask for more messages now."""
        self._changed.set()

    async def _ask(self, reply: str) -> None:
        """Ask for what the taker can hold beyond what it has asked for already."""
        wanted = self._capacity() - self._outstanding - len(self._buffer)
        if wanted <= 0 or self._outstanding > self._capacity() // 2:
            return
        self._outstanding += wanted
        expires = int(self._expires_s * 1e9)
        body = {"batch": wanted, "expires": expires, "idle_heartbeat": int(expires / 2.5)}
        await self._link.send(self._next, orjson.dumps(body), reply=reply)

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(min(self._expires_s, 0.5)):
                await self._changed.wait()
        except TimeoutError:
            # Other jobs may have freed capacity. A pull without any answer is given up once it has expired.
            self._quiet_s += min(self._expires_s, 0.5)
            if self._quiet_s > self._expires_s * 2:
                self._start_over()

    async def _receive(self, msg: Msg) -> None:
        self._quiet_s = 0.0
        headers = msg.headers
        if headers is not None and not msg.data and "Status" in headers:
            if headers["Status"] in _ENDED:
                self._ended(headers)
            return
        self._outstanding = max(0, self._outstanding - 1)
        self._buffer.append(msg)
        self._changed.set()

    def _ended(self, headers: dict[str, str]) -> None:
        left = headers.get("Nats-Pending-Messages")
        self._outstanding = max(0, self._outstanding - int(left)) if left else 0
        if headers["Status"] == _NOBODY or "Consumer Deleted" in headers.get("Description", ""):
            self._gone = "the consumer is gone"
        self._changed.set()

    def _start_over(self) -> None:
        self._outstanding = 0
        self._quiet_s = 0.0
        self._changed.set()
