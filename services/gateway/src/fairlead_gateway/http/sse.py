"""Server-sent events to one client. A disconnect, a shutdown, an error or a stall ends the stream."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType
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
# A chunk holds several small frames, so that many cost little more than one.
CHUNK_BYTES_MAX: Final = 64 * 1024
# How long the end of a stream waits for its client.
END_S: Final = 2.0
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
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
        self._is_closed = False
        self._taker: asyncio.Future[None] | None = None
        self._drained = asyncio.Event()

    async def put(self, frame: bytes) -> None:
        """Add a frame, and wait for room. For events from the log, which can wait."""
        while not self._has_room(frame):
            await self._wait_for_take()
        self._add(frame)

    def offer(self, frame: bytes) -> None:
        """Add a live frame without waiting. Raises SlowClient if there is no room."""
        if not self._has_room(frame):
            raise SlowClient
        self._add(frame)

    def beat(self) -> None:
        """Add a heartbeat, unless something waits already."""
        if not self._frames:
            self._add(HEARTBEAT)

    async def wait_until_half_empty(self) -> None:
        """Wait until a burst of live frames has room."""
        while len(self._frames) * 2 > self._frames_max or self._bytes * 2 > self._bytes_max:
            await self._wait_for_take()

    async def take(self) -> bytes:
        """The next frames, joined up to a size. Nothing if the queue is closed and empty."""
        while not self._frames and not self._is_closed:
            self._taker = asyncio.get_running_loop().create_future()
            await self._taker
        if not self._frames:
            return b""
        taken = [self._frames.popleft()]
        size = len(taken[0])
        while self._frames and size + len(self._frames[0]) <= CHUNK_BYTES_MAX:
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self._bytes -= size
        self._drained.set()
        # The only frame is the very bytes that other clients get too.
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def close(self) -> None:
        """End the queue behind the frames that it has."""
        self._is_closed = True
        self._wake_taker()

    def _has_room(self, frame: bytes) -> bool:
        """Whether the frame fits. An empty queue takes a frame of any size, or it would never pass."""
        if not self._frames:
            return True
        return len(self._frames) < self._frames_max and self._bytes + len(frame) <= self._bytes_max

    def _add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        self._wake_taker()

    def _wake_taker(self) -> None:
        if self._taker is not None:
            if not self._taker.done():
                self._taker.set_result(None)
            self._taker = None

    async def _wait_for_take(self) -> None:
        self._drained.clear()
        await self._drained.wait()


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
        headers: Mapping[str, str] = NO_HEADERS,
        farewell: bytes = b"",
        tells_failure: bool = True,
    ) -> None:
        """`held` is left when the stream ends: the caller's count of open streams.

        `farewell` is the last frame if the process stops. A client that knows no frame for failures
        gets none: its stream just ends.
        """
        super().__init__(headers={**HEADERS, **headers})
        # The length of a stream is not known.
        del self.headers["content-length"]
        self._sources = sources
        self._shutdown = shutdown
        self._limits = limits
        self._held = held or nullcontext()
        self._farewell = farewell
        self._tells_failure = tells_failure

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await self._stream(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        limits = self._limits
        frames = FrameQueue(frames_max=limits.frames_max, bytes_max=limits.bytes_max)
        writer = FrameWriter(frames, send, limits)
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        writing: asyncio.Future[Any] = asyncio.create_task(writer.run())
        others: list[asyncio.Future[Any]] = [
            disconnect,
            writer.stalled,
            asyncio.create_task(self._shutdown.wait()),
            *(asyncio.create_task(source(frames)) for source in self._sources),
        ]
        try:
            done, _ = await asyncio.wait([writing, *others], return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait(*others)
            errors = [error for task in done if (error := task.exception()) is not None]
            if disconnect in done:
                return
            if any(isinstance(error, SlowClient) for error in errors):
                log.info("client reads too slowly: its stream is cut off")
                # Without a last chunk the server drops the connection.
                return
            request = f"{scope['method']} {scope['path']}"
            if errors and not self._tells_failure:
                log.info("stream ended by an error: its client connects again", exc_info=errors[0])
                errors = []
            last = self._farewell if self._shutdown.is_set() else b""
            await _end(frames, writing, send, errors, request=request, last=last)
        finally:
            writer.stop()
            await cancel_and_wait(writing, *others)


async def _end(
    frames: FrameQueue,
    writing: "asyncio.Future[Any]",
    send: Send,
    errors: list[BaseException],
    *,
    request: str,
    last: bytes,
) -> None:
    """Send what waits, then the error of a failed source, and the end. A stuck client gets nothing."""
    failures = [error for error in errors if isinstance(error, Exception)]
    chunk = b"".join(_failure_frame(error, request=request) for error in failures) + last
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            if chunk:
                frames.close()
                await writing
            else:
                await cancel_and_wait(writing)
            await send({"type": "http.response.body", "body": chunk, "more_body": False})


class FrameWriter:
    """Writes the frames of a queue to its client. One timer beats for it and notices a stall."""

    def __init__(self, frames: FrameQueue, send: Send, limits: StreamLimits) -> None:
        self._frames = frames
        self._send = send
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._sent_at = self._loop.time()
        self._is_sending = False
        self.stalled: asyncio.Future[None] = self._loop.create_future()
        """Raises SlowClient if the client does not take a chunk in time."""
        self._pause_s = min(limits.heartbeat_s, limits.stall_s)
        self._timer = self._loop.call_later(self._pause_s, self._look)

    async def run(self) -> None:
        """Write until the queue is closed and empty, or until cancelled."""
        message: dict[str, Any] = {"type": "http.response.body", "more_body": True}
        while chunk := await self._frames.take():
            self._is_sending, self._sent_at = True, self._loop.time()
            await self._send({**message, "body": chunk})
            self._is_sending = False

    def stop(self) -> None:
        """End the timer."""
        self._timer.cancel()

    def _look(self) -> None:
        """Cut off a client that stalls, else beat if nothing was sent for a while."""
        limits, idle_s = self._limits, self._loop.time() - self._sent_at
        wait_s = (limits.stall_s if self._is_sending else limits.heartbeat_s) - idle_s
        if wait_s > 0:
            self._timer = self._loop.call_later(min(wait_s, self._pause_s), self._look)
            return
        if self._is_sending:
            if not self.stalled.done():
                self.stalled.set_exception(SlowClient())
            return
        self._frames.beat()
        self._timer = self._loop.call_later(self._pause_s, self._look)


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
