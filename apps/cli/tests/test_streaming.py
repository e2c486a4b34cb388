"""Frames, and a stream that survives its connection."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from fairlead_cli import event_stream
from fairlead_cli.errors import Unreachable
from fairlead_cli.event_stream import FAILURE_EVENT, OPENED, Frame, frames, resumed


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "DELAY_S_MIN", 0.0)
    monkeypatch.setattr(event_stream, "DELAY_S_MAX", 0.0)


async def lines(text: str) -> AsyncIterator[str]:
    for line in text.split("\n"):
        yield line


class Server:
    """Answers each connection with its next script; None refuses."""

    def __init__(self, *scripts: list[Frame] | None) -> None:
        self._scripts = list(scripts)
        self.asked: list[int | None] = []

    async def open(self, after: int | None) -> AsyncGenerator[Frame, None]:
        self.asked.append(after)
        script = self._scripts.pop(0) if self._scripts else None
        if script is None:
            raise Unreachable("http://test")
        yield OPENED
        for frame in script:
            yield frame


async def collect(server: Server, count: int, after: int | None = None) -> list[Frame]:
    found: list[Frame] = []
    async with aclosing(resumed(server.open, after=after)) as stream:
        async for frame in stream:
            found.append(frame)
            if len(found) == count:
                break
    return found


async def test_frames_are_read_as_the_wire_says() -> None:
    text = ": heartbeat\n\nid: 7\ndata: {\ndata: }\n\ndata:live\n\nevent: x\ndata: 1\n\nid: 9\n\n"

    found = [frame async for frame in frames(lines(text))]

    assert found == [Frame("{\n}", 7), Frame("live"), Frame("1", None, "x")]


async def test_a_lost_connection_resumes_after_the_last_durable_frame() -> None:
    server = Server([Frame("a", 1), Frame("~"), Frame("b", 2)], [Frame("c", 3)])

    found = await collect(server, 4)

    assert found == [Frame("a", 1), Frame("~"), Frame("b", 2), Frame("c", 3)]
    assert server.asked == [None, 2]


async def test_what_was_seen_is_not_shown_again() -> None:
    server = Server([Frame("a", 1), Frame("b", 2)], [Frame("b", 2), Frame("c", 3)])

    assert [frame.seq for frame in await collect(server, 3)] == [1, 2, 3]


async def test_a_stream_that_says_it_failed_is_opened_again() -> None:
    failure = Frame("{}", None, FAILURE_EVENT)
    server = Server([Frame("a", 1), failure, Frame("never", 9)], None, [Frame("b", 2)])

    assert [frame.data for frame in await collect(server, 2)] == ["a", "b"]
    assert server.asked == [None, 1, 1]


async def test_a_server_that_was_never_there_is_an_error() -> None:
    with pytest.raises(Unreachable):
        await collect(Server(None, [Frame("a", 1)]), 1)


async def test_a_silent_connection_that_breaks_is_opened_again() -> None:
    server = Server([], [Frame("a", 6)])

    assert await collect(server, 1, after=5) == [Frame("a", 6)]
    assert server.asked == [5, 5]


async def test_a_reader_may_limit_the_attempts() -> None:
    server = Server([Frame("a", 1)], None, None, None)

    with pytest.raises(Unreachable):
        async with aclosing(resumed(server.open, attempts_max=3)) as stream:
            assert [frame.seq async for frame in stream] == [1]

    assert len(server.asked) == 4
