"""Server-sent events: bounded frames to one client, ended by it, by us, by a failure or by a stall."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from fairlead_gateway.http.answers import cause
from fairlead_schema.public_events import EventEnvelope
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)

HEARTBEAT: Final = b": heartbeat\n\n"
CAUGHT_UP: Final = b": caught-up\n\n"
HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
FAILURE_EVENT: Final = b"effect/httpapi/stream/failure"

Item = TypeVar("Item")


def frame(envelope: EventEnvelope) -> bytes:
    """One event as a frame; a durable one carries its seq as the id to resume from."""
    data = envelope.model_dump_json(by_alias=True, exclude_none=True).encode()
    if envelope.durable is None:
        return b"data: %s\n\n" % data
    return b"id: %d\ndata: %s\n\n" % (envelope.durable.seq, data)


class SlowClient(Exception):
    """The client takes less than comes; it reconnects and resumes where it stopped."""


class Outbox:
    """The frames on their way to one client. Bounded: nothing grows behind a slow one."""

    def __init__(self, frames_max: int) -> None:
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(frames_max)

    async def put(self, frame: bytes) -> None:
        """Add a frame, waiting for room: for what the log can give again at any pace."""
        await self._frames.put(frame)

    def offer(self, frame: bytes) -> None:
        """Add a frame that cannot wait. Raises SlowClient."""
        try:
            self._frames.put_nowait(frame)
        except asyncio.QueueFull:
            raise SlowClient from None

    async def take(self, *, patience_s: float) -> bytes:
        """The next frame, or a heartbeat when there is none for a while."""
        try:
            # Not wait_for: on 3.11 it can swallow the cancellation that ends a stream.
            async with asyncio.timeout(patience_s):
                return await self._frames.get()
        except TimeoutError:
            return HEARTBEAT


Source: TypeAlias = Callable[[Outbox], Coroutine[Any, Any, None]]
"""Fills an outbox until it is cancelled."""


class EventStream(Response):
    """A streaming answer. All its sources are closed when it ends, however it ends."""

    def __init__(
        self,
        *sources: Source,
        closing: asyncio.Event,
        heartbeat_s: float,
        stall_s: float,
        frames_max: int,
    ) -> None:
        super().__init__(headers=HEADERS)
        # The length of a stream is not known.
        del self.headers["content-length"]
        self._sources = sources
        self._closing = closing
        self._heartbeat_s = heartbeat_s
        self._stall_s = stall_s
        self._frames_max = frames_max

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        outbox = Outbox(self._frames_max)
        gone = asyncio.create_task(_disconnected(receive))
        tasks = [
            gone,
            asyncio.create_task(self._closing.wait()),
            asyncio.create_task(self._write(outbox, send)),
            *(asyncio.create_task(source(outbox)) for source in self._sources),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(*tasks)
        if gone not in done:
            await self._end(done, send)

    async def _write(self, outbox: Outbox, send: Send) -> None:
        while True:
            chunk = await outbox.take(patience_s=self._heartbeat_s)
            await self._send(send, chunk)

    async def _send(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        message = {"type": "http.response.body", "body": chunk, "more_body": more}
        try:
            async with asyncio.timeout(self._stall_s):
                await send(message)
        except TimeoutError:
            raise SlowClient from None

    async def _end(self, done: set[asyncio.Task[Any]], send: Send) -> None:
        """Close in order: say why if something failed, and nothing to a client that is stuck."""
        errors = [error for task in done if (error := task.exception()) is not None]
        if any(isinstance(error, SlowClient) for error in errors):
            log.info("a slow client was cut off")
            # Without the closing chunk the server drops the connection, as it must.
            return
        chunk = b"".join(_failure(error) for error in errors if isinstance(error, Exception))
        with suppress(SlowClient):
            await self._send(send, chunk, more=False)


@asynccontextmanager
async def closed(items: AsyncIterator[Item]) -> AsyncIterator[AsyncIterator[Item]]:
    """Iterate, and free what the iterator holds even when the reader stops between two items."""
    close: Callable[[], Awaitable[object]] | None = getattr(items, "aclose", None)
    try:
        yield items
    finally:
        if close is not None:
            await close()


def _failure(error: Exception) -> bytes:
    body = cause(error).model_dump_json(by_alias=True, exclude_none=True).encode()
    return b"event: %s\ndata: %s\n\n" % (FAILURE_EVENT, body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
