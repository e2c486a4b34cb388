"""Server-sent events to one client. A disconnect, a shutdown, an error or a stall ends the stream."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from fairlead_gateway.http.answers import wire_error
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


def event_frame(envelope: EventEnvelope) -> bytes:
    """One event as a frame. A durable event carries its seq as the id to resume from."""
    data = envelope.model_dump_json(by_alias=True, exclude_none=True).encode()
    if envelope.durable is None:
        return b"data: %s\n\n" % data
    return b"id: %d\ndata: %s\n\n" % (envelope.durable.seq, data)


class SlowClient(Exception):
    """The client reads too slowly. It can reconnect and resume where it stopped."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How long a stream waits, and how much may wait for its client."""

    heartbeat_s: float = 15.0
    stall_s: float = 30.0
    frames_max: int = 256
    bytes_max: int = 16 * 1024 * 1024


class FrameQueue:
    """A queue of frames for one client. Frames and bytes are bounded, so a slow client is cheap."""

    def __init__(self, *, frames_max: int, bytes_max: int) -> None:
        self._frames: deque[bytes] = deque()
        self._frames_max = frames_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    async def put(self, frame: bytes) -> None:
        """Add a frame, and wait for room. For events from the log, which can wait."""
        while not self._has_room(frame):
            self._drained.clear()
            await self._drained.wait()
        self._add(frame)

    def offer(self, frame: bytes) -> None:
        """Add a live frame without waiting. Raises SlowClient if there is no room."""
        if not self._has_room(frame):
            raise SlowClient
        self._add(frame)

    async def take(self, *, heartbeat_s: float) -> bytes:
        """The next frame, or a heartbeat if none comes for `heartbeat_s`."""
        try:
            # On 3.11 wait_for can swallow the cancellation that ends a stream.
            async with asyncio.timeout(heartbeat_s):
                while not self._frames:
                    self._filled.clear()
                    await self._filled.wait()
        except TimeoutError:
            return HEARTBEAT
        frame = self._frames.popleft()
        self._bytes -= len(frame)
        self._drained.set()
        return frame

    def _has_room(self, frame: bytes) -> bool:
        """Whether the frame fits. An empty queue takes a frame of any size, or it would never pass."""
        if not self._frames:
            return True
        return len(self._frames) < self._frames_max and self._bytes + len(frame) <= self._bytes_max

    def _add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        self._filled.set()


FrameSource: TypeAlias = Callable[[FrameQueue], Coroutine[Any, Any, None]]
"""Puts frames into the queue until it is cancelled."""


class EventStream(Response):
    """A streaming answer. It cancels all its sources when it ends, for whatever reason."""

    def __init__(
        self,
        *sources: FrameSource,
        shutdown: asyncio.Event,
        limits: StreamLimits,
        held: AbstractContextManager[object] | None = None,
    ) -> None:
        """`held` is left when the stream ends: the caller's count of open streams."""
        super().__init__(headers=HEADERS)
        # The length of a stream is not known.
        del self.headers["content-length"]
        self._sources = sources
        self._shutdown = shutdown
        self._limits = limits
        self._held = held or nullcontext()

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await self._stream(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        frames = FrameQueue(frames_max=self._limits.frames_max, bytes_max=self._limits.bytes_max)
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        tasks = [
            disconnect,
            asyncio.create_task(self._shutdown.wait()),
            asyncio.create_task(self._write(frames, send)),
            *(asyncio.create_task(source(frames)) for source in self._sources),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(*tasks)
        if disconnect not in done:
            await self._end(done, send, request=f"{scope['method']} {scope['path']}")

    async def _write(self, frames: FrameQueue, send: Send) -> None:
        while True:
            chunk = await frames.take(heartbeat_s=self._limits.heartbeat_s)
            await self._send_in_time(send, chunk)

    async def _send_in_time(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        """Send one chunk. Raises SlowClient if the client does not take the chunk in time."""
        message = {"type": "http.response.body", "body": chunk, "more_body": more}
        try:
            async with asyncio.timeout(self._limits.stall_s):
                await send(message)
        except TimeoutError:
            raise SlowClient from None

    async def _end(self, done: set[asyncio.Task[Any]], send: Send, *, request: str) -> None:
        """Send the error of a failed source, then close. A stuck client gets nothing more."""
        errors = [error for task in done if (error := task.exception()) is not None]
        if any(isinstance(error, SlowClient) for error in errors):
            log.info("client reads too slowly: its stream is cut off")
            # Without a last chunk the server drops the connection.
            return
        failures = [error for error in errors if isinstance(error, Exception)]
        chunk = b"".join(_failure_frame(error, request=request) for error in failures)
        with suppress(SlowClient):
            await self._send_in_time(send, chunk, more=False)


@asynccontextmanager
async def auto_close(items: AsyncIterator[Item]) -> AsyncIterator[AsyncIterator[Item]]:
    """Close an iterator at the end of the block, also when its reader stops early."""
    close: Callable[[], Awaitable[object]] | None = getattr(items, "aclose", None)
    try:
        yield items
    finally:
        if close is not None:
            await close()


def _failure_frame(error: Exception, *, request: str) -> bytes:
    refusal = wire_error(error, request=request)
    body = refusal.model_dump_json(by_alias=True, exclude_none=True).encode()
    return b"event: %s\ndata: %s\n\n" % (FAILURE_EVENT, body)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
