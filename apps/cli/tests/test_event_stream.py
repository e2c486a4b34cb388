"""Server-sent events are parsed, and a stream survives its connection."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from fairlead_cli.errors import Unreachable
from fairlead_cli.event_stream import (
    CONNECTED,
    FAILURE_EVENT,
    StreamEvent,
    follow_stream,
    parse_events,
)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


class Server:
    """Answers each connection with its next script; None refuses the connection."""

    def __init__(self, *scripts: list[StreamEvent] | None) -> None:
        self._scripts = list(scripts)
        self.resume_points: list[int | None] = []

    async def open(self, after: int | None) -> AsyncGenerator[StreamEvent, None]:
        self.resume_points.append(after)
        script = self._scripts.pop(0) if self._scripts else None
        if script is None:
            raise Unreachable("http://test")
        yield CONNECTED
        for event in script:
            yield event


async def collect(server: Server, count: int, after: int | None = None) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    async with aclosing(follow_stream(server.open, after=after, delay_s_min=0.0)) as stream:
        async for event in stream:
            events.append(event)
            if len(events) == count:
                break
    return events


async def test_frames_are_read_as_the_wire_says() -> None:
    body = b": heartbeat\n\nid: 7\ndata: {\ndata: }\n\ndata:live\n\nevent: x\ndata: 1\n\nid: 9\n\n"

    events = [event async for event in parse_events(chunks(body[:20], body[20:]))]

    assert events == [StreamEvent("{\n}", 7), StreamEvent("live"), StreamEvent("1", None, "x")]


async def test_a_unicode_line_separator_inside_a_text_does_not_end_its_line() -> None:
    data = '{"delta":"a\u2028b\u0085c"}'

    events = [event async for event in parse_events(chunks(f"data: {data}\n\n".encode()))]

    assert events == [StreamEvent(data)]


async def test_a_lost_connection_resumes_after_the_last_durable_frame() -> None:
    """P-32."""
    first = [StreamEvent("a", 1), StreamEvent("~"), StreamEvent("b", 2)]
    server = Server(first, [StreamEvent("c", 3)])

    assert await collect(server, 4) == [*first, StreamEvent("c", 3)]
    assert server.resume_points == [None, 2]


async def test_what_was_seen_is_not_shown_again() -> None:
    server = Server(
        [StreamEvent("a", 1), StreamEvent("b", 2)], [StreamEvent("b", 2), StreamEvent("c", 3)]
    )

    assert [event.seq for event in await collect(server, 3)] == [1, 2, 3]


async def test_a_stream_that_says_it_failed_is_opened_again() -> None:
    failure = StreamEvent("{}", None, FAILURE_EVENT)
    server = Server(
        [StreamEvent("a", 1), failure, StreamEvent("never", 9)], None, [StreamEvent("b", 2)]
    )

    assert [event.data for event in await collect(server, 2)] == ["a", "b"]
    assert server.resume_points == [None, 1, 1]


async def test_a_server_that_was_never_there_is_an_error() -> None:
    with pytest.raises(Unreachable):
        await collect(Server(None, [StreamEvent("a", 1)]), 1)


async def test_a_silent_connection_that_breaks_is_opened_again() -> None:
    server = Server([], [StreamEvent("a", 6)])

    assert await collect(server, 1, after=5) == [StreamEvent("a", 6)]
    assert server.resume_points == [5, 5]


async def test_a_reader_may_limit_the_attempts() -> None:
    server = Server([StreamEvent("a", 1)], None, None, None)

    with pytest.raises(Unreachable):
        async with aclosing(follow_stream(server.open, attempts_max=3, delay_s_min=0.0)) as stream:
            assert [event.seq async for event in stream] == [1]

    assert len(server.resume_points) == 4
