"""Reads a session's server-sent events, and resumes the stream when its connection breaks."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, NamedTuple, TypeAlias

from fairlead_cli.errors import Unreachable
from fairlead_llm import sse

DELAY_S_MIN: Final = 0.1
DELAY_S_MAX: Final = 2.0
FAILURE_EVENT: Final = "effect/httpapi/stream/failure"


class StreamEvent(NamedTuple):
    """One event of a stream. A durable event has the seq to resume after."""

    data: str
    seq: int | None = None
    name: str = "message"


CONNECTED: Final = StreamEvent("", name="connected")
"""The server has answered; its first event may come much later."""

OpenStream: TypeAlias = Callable[[int | None], AsyncGenerator[StreamEvent, None]]
"""Opens the stream after a seq and yields CONNECTED first. Raises Unreachable when nobody answers."""


async def parse_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of one response as its bytes arrive. Raises FrameTooLarge."""
    parser = sse.START
    async for chunk in chunks:
        parser, frames = sse.feed(parser, chunk)
        for frame in frames:
            seq = int(frame.id) if frame.id is not None and frame.id.isdigit() else None
            yield StreamEvent(frame.data.decode(), seq, frame.event or "message")


async def follow_stream(
    open_stream: OpenStream,
    *,
    after: int | None = None,
    attempts_max: int | None = None,
    on_reconnect: Callable[[], None] = lambda: None,
    delay_s_min: float = DELAY_S_MIN,
) -> AsyncGenerator[StreamEvent, None]:
    """Yield each durable event once and in order, and live events as they come, across reconnects.

    The first connection must succeed. Raises Unreachable after `attempts_max` failures in a row.
    `delay_s_min` is the pause before the first new connection. It doubles with each failure.
    """
    delay_s, failures, connected = delay_s_min, 0, False
    while True:
        try:
            async with aclosing(open_stream(after)) as stream:
                async for event in stream:
                    if event.name == FAILURE_EVENT:
                        break
                    connected, failures, delay_s = True, 0, delay_s_min
                    if event is CONNECTED or _is_repeat(event, after):
                        continue
                    after = after if event.seq is None else event.seq
                    yield event
        except Unreachable:
            failures += 1
            if not connected or failures == attempts_max:
                raise
        connected = True
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, DELAY_S_MAX)
        on_reconnect()


def _is_repeat(event: StreamEvent, after: int | None) -> bool:
    return after is not None and event.seq is not None and event.seq <= after
