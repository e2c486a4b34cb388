"""The streaming answer: failures, slow clients, and how a stream ends."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_gateway.http.sse import EventStream, FrameQueue, SlowClient, StreamLimits
from fairlead_schema.errors import ServiceUnavailable

FRAMES_MAX = 4


async def _send_all(stream: EventStream, *, stuck: bool = False) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        sent.append(message)
        if stuck and message["type"] == "http.response.body":
            await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "path": "/api/session/ses_1/events"}
    await asyncio.wait_for(stream(scope, receive, send), 2)
    return sent


def _stream(source: Callable[[FrameQueue], Any], *, stall_s: float = 5) -> EventStream:
    limits = StreamLimits(heartbeat_s=1, stall_s=stall_s, frames_max=FRAMES_MAX)
    return EventStream(source, shutdown=asyncio.Event(), limits=limits)


async def test_a_failure_in_the_middle_is_a_named_frame_and_the_end() -> None:
    async def fail(frames: FrameQueue) -> None:
        await frames.put(b"data: 1\n\n")
        await asyncio.sleep(0.01)
        raise ServiceUnavailable("The log is away", service="nats")

    *_, first, last = await _send_all(_stream(fail))

    assert first["body"] == b"data: 1\n\n"
    assert last["body"].startswith(b"event: effect/httpapi/stream/failure\ndata: {")
    assert b"ServiceUnavailableError" in last["body"]
    assert last["more_body"] is False


async def test_a_client_that_takes_nothing_is_cut_off() -> None:
    async def endless(frames: FrameQueue) -> None:
        while True:
            await frames.put(b"data: 1\n\n")

    sent = await _send_all(_stream(endless, stall_s=0.02), stuck=True)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


async def test_live_fragments_behind_a_slow_client_end_the_stream_instead_of_growing() -> None:
    """H-37."""
    accepted = 0

    async def burst(frames: FrameQueue) -> None:
        nonlocal accepted
        for _ in range(100):
            frames.offer(b"data: 1\n\n")
            accepted += 1
        await asyncio.sleep(10)

    sent = await _send_all(_stream(burst), stuck=True)

    assert accepted == FRAMES_MAX
    # The server drops a connection whose answer has no last chunk: the client sees the cut.
    assert sent[0]["type"] == "http.response.start"
    assert all(message["more_body"] for message in sent[1:])
    with pytest.raises(SlowClient):
        await burst(FrameQueue(frames_max=FRAMES_MAX, bytes_max=1000))


async def test_frames_behind_a_slow_client_are_bounded_by_bytes() -> None:
    """B13: 256 frames of 8 MB each would be 2 GB for one client."""
    frames = FrameQueue(frames_max=100, bytes_max=1000)
    frames.offer(b"x" * 900)

    with pytest.raises(SlowClient):
        frames.offer(b"x" * 101)
    waiting = asyncio.create_task(frames.put(b"y" * 101))
    await asyncio.sleep(0)
    assert not waiting.done()

    assert len(await frames.take()) == 900
    await asyncio.wait_for(waiting, 5)
    assert len(await frames.take()) == 101


async def test_a_frame_larger_than_the_limit_still_passes_alone() -> None:
    frames = FrameQueue(frames_max=100, bytes_max=10)

    await frames.put(b"x" * 50)

    assert len(await frames.take()) == 50
