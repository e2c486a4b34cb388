"""A pull consumer in callback mode: several times faster than fetch, and bounded by its capacity."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import orjson

from fairlead_eventlog.errors import ConsumerMissing
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.thin.frames import DESCRIPTION, STATUS, InboundMessage

# Nobody serves the consumer.
_NO_RESPONDERS: Final = "503"
# The ends of a pull that got as many bytes, or as many messages, as it asked for.
_SERVED: Final = ("Exceeds MaxBytes", "Batch Completed")
_CONFLICT: Final = "409"
# The server ends a pull with one of these; "100" is a heartbeat.
_PULL_ENDED: Final = frozenset({"404", "408", _CONFLICT})
# The server may refuse pulls for a while: too many wait, or a leader is elected.
CONFLICT_PAUSE_S: Final = 0.5
# Nobody serves a consumer for a moment after a cluster made it, and while its leader is elected.
LEADERLESS_S: Final = 3.0
LEADERLESS_PAUSE_S: Final = 0.1
LOOK_TIMEOUT_S: Final = 2.0


class Pull:
    """Pipelined pull requests on one consumer."""

    def __init__(
        self,
        link: NatsLink,
        stream: str,
        consumer: str,
        *,
        capacity: Callable[[], int],
        expires_s: float,
        bytes_max: int | None = None,
    ) -> None:
        self._link = link
        self._next = next_message(stream, consumer)
        self._gone = ConsumerMissing(stream, consumer)
        self._capacity = capacity
        self._expires_s = expires_s
        self._bytes_max = bytes_max
        self._buffer: list[InboundMessage] = []
        self._outstanding = 0
        self._changed = asyncio.Event()
        self._failure: ConsumerMissing | None = None
        self._silence_s = 0.0
        self._paused_until = 0.0
        self._leaderless_since: float | None = None

    async def batches(self) -> AsyncIterator[list[InboundMessage]]:
        """Messages in lists as they arrive, for ever. Raises ConsumerMissing if it is gone."""
        # A delivery keeps the subject of its stream, so a pull needs a subscription of its own.
        reply = self._link.client.new_inbox()
        subscription = await self._link.listen(reply, self._receive)
        unregister = self._link.on_reconnect(self._start_over)
        try:
            while True:
                await self._ask(reply)
                if self._buffer:
                    batch, self._buffer = self._buffer, []
                    yield batch
                    continue
                if self._failure is not None:
                    raise self._failure
                await self._wait()
        finally:
            unregister()
            with suppress(Exception):
                await subscription.unsubscribe()

    def ask_again(self) -> None:
        """The capacity has grown: ask for more messages now."""
        self._changed.set()

    async def _ask(self, reply: str) -> None:
        """Ask for as many messages as the capacity allows beyond those that were asked for already."""
        if time.monotonic() < self._paused_until:
            return
        missing = self._capacity() - self._outstanding - len(self._buffer)
        if missing <= 0 or self._outstanding > self._capacity() // 2:
            return
        if self._bytes_max is not None and self._outstanding + len(self._buffer) > 0:
            return  # One pull at a time keeps to its bytes; two would have twice as many.
        self._outstanding += missing
        expires = int(self._expires_s * 1e9)
        body = {"batch": missing, "expires": expires, "idle_heartbeat": int(expires / 2.5)}
        if self._bytes_max is not None:
            body["max_bytes"] = self._bytes_max
        await self._link.send(self._next, orjson.dumps(body), reply=reply)

    async def _wait(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(self._wait_s()):
                await self._changed.wait()
        except TimeoutError:
            # The capacity may have grown. A pull without any answer is repeated after it has expired.
            self._silence_s += self._wait_s()
            if self._silence_s > self._expires_s * 2:
                self._start_over()

    def _wait_s(self) -> float:
        pause = CONFLICT_PAUSE_S if self._leaderless_since is None else LEADERLESS_PAUSE_S
        return min(self._expires_s, pause)

    def _receive(self, msg: InboundMessage) -> None:
        self._silence_s = 0.0
        if msg.is_status and msg.headers.get(STATUS) == _NO_RESPONDERS:
            self._on_leaderless()
            return
        self._leaderless_since = None
        if msg.is_status:
            if msg.headers.get(STATUS) in _PULL_ENDED:
                self._on_pull_ended(msg.headers)
            return
        self._outstanding = max(0, self._outstanding - 1)
        self._buffer.append(msg)
        self._changed.set()

    def _on_pull_ended(self, headers: dict[str, str]) -> None:
        unserved = headers.get("Nats-Pending-Messages")
        self._outstanding = max(0, self._outstanding - int(unserved)) if unserved else 0
        description = headers.get(DESCRIPTION, "")
        if any(end in description for end in _SERVED):
            self._changed.set()
            return  # The next pull gets the rest.
        if "Consumer Deleted" in description:
            self._failure = self._gone
        elif headers[STATUS] == _CONFLICT:
            self._paused_until = time.monotonic() + CONFLICT_PAUSE_S
        self._changed.set()

    def _on_leaderless(self) -> None:
        """Ask again in a moment. A consumer that nobody serves for long does not exist."""
        now = time.monotonic()
        self._outstanding = 0
        if self._leaderless_since is None:
            self._leaderless_since = now
        if now - self._leaderless_since > LEADERLESS_S:
            self._failure = self._gone
            self._changed.set()
        self._paused_until = now + LEADERLESS_PAUSE_S

    def _start_over(self) -> None:
        self._outstanding = 0
        self._silence_s = 0.0
        self._changed.set()


async def fetch_waiting(
    link: NatsLink, stream: str, consumer: str, batch: int
) -> list[InboundMessage]:
    """Up to so many messages that wait now, without waiting for more. Raises LogUnavailable."""
    messages: list[InboundMessage] = []
    done = asyncio.Event()

    def receive(msg: InboundMessage) -> None:
        if msg.is_status:
            done.set()
            return
        messages.append(msg)
        if len(messages) >= batch:
            done.set()

    reply = link.client.new_inbox()
    subscription = await link.listen(reply, receive)
    try:
        body = orjson.dumps({"batch": batch, "no_wait": True})
        await link.send(next_message(stream, consumer), body, reply=reply)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                await done.wait()
    finally:
        with suppress(Exception):
            await subscription.unsubscribe()
    return messages


def next_message(stream: str, consumer: str) -> str:
    """The subject that asks a consumer for messages."""
    return f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
