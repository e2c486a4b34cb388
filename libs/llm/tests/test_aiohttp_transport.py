"""The HTTP/1.1 transport against real sockets: any pieces, slow readers, broken and reused connections."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import httpx
import orjson
import pytest

from fairlead_llm.chunks import join_chunks
from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_llm.transport import Transport, clients
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish, TextChunk
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

pytestmark = pytest.mark.integration

ASK = ModelRequest("m", turns=(UserTurn((TextPart("hi"),)),))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "recordings"
PROTOCOLS = ("anthropic-messages", "gemini", "openai-chat", "openai-responses")

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def text_frame(text: str) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"delta": {"content": text}}]}) + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


@asynccontextmanager
async def provider(serve: Serve) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def read_events(
    client: httpx.AsyncClient, url: str, request: ModelRequest = ASK, protocol: str = "openai-chat"
) -> list[ProviderEvent]:
    endpoint = ProviderEndpoint(protocol, url, first_byte_s=60, idle_s=60)
    return [event async for event in stream(client, endpoint, request)]


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextChunk))


async def test_a_provider_that_sends_one_byte_at_a_time_is_read() -> None:
    body = chunk(text_frame("slow")) + chunk(DONE) + END

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for byte in HEAD + body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        events = await read_events(client_for(Transport()), url)

    assert text_of(events) == "slow"
    assert isinstance(events[-1], StepFinish)


async def test_many_chunks_of_one_read_come_together() -> None:
    """100,000 chunks cost far fewer reads, and no text is lost."""
    count = 100_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD)
        for start in range(0, count, 1000):
            writer.write(chunk(text_frame("x")) * min(1000, count - start))
            await writer.drain()
        writer.write(chunk(DONE) + END)
        await writer.drain()

    reads = 0
    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        client = client_for(Transport())
        async with client.stream("POST", url, content=b"{}") as response:
            length = 0
            async for piece in response.aiter_raw():
                reads += 1
                length += len(piece)

    assert length == count * len(text_frame("x")) + len(DONE)
    assert reads < count / 10


async def test_a_flood_of_chunks_is_few_events() -> None:
    """Each event is a message to clients: 100,000 chunks must not be 100,000 messages."""
    count = 100_000
    frames = chunk(text_frame("x")) * 1000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD)
        for _ in range(count // 1000):
            writer.write(frames)
            await writer.drain()
        writer.write(chunk(DONE) + END)
        await writer.drain()

    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        others = asyncio.create_task(count_turns())
        events = await read_events(client_for(Transport()), url)
        others.cancel()

    assert text_of(events) == "x" * count
    assert isinstance(events[-1], StepFinish)
    assert len(events) < count / 100
    # Between two reads everybody else has a turn, however fast the provider is.
    assert turns >= len(events) - 3


async def test_a_large_frame_byte_by_byte_is_one_event() -> None:
    text = "x" * 50_000
    body = text_frame(text)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD)
        for start in range(0, len(body), 500):
            # Chunks of one byte: their frame is 100 times as long as what one read brings.
            writer.write(b"".join(chunk(bytes([byte])) for byte in body[start : start + 500]))
            await writer.drain()
        writer.write(chunk(DONE) + END)
        await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        events = await read_events(client_for(Transport()), url)

    assert [len(event.text) for event in events if isinstance(event, TextChunk)] == [len(text)]
    assert isinstance(events[-1], StepFinish)


async def test_a_frame_of_ten_megabytes_is_one_event() -> None:
    text = "x" * 10_000_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + chunk(text_frame(text)) + chunk(DONE) + END)
        await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        events = await read_events(client_for(Transport()), url)

    assert [len(event.text) for event in events if isinstance(event, TextChunk)] == [len(text)]
    assert isinstance(events[-1], StepFinish)


async def test_a_reader_that_pauses_stops_the_provider() -> None:
    """Back-pressure: what the provider may send ahead is bounded, however long the answer is."""
    piece = chunk(text_frame("x" * 60_000))
    written = 0
    blocked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(HEAD)
        for _ in range(2000):
            writer.write(piece)
            written += len(piece)
            try:
                async with asyncio.timeout(1):
                    await writer.drain()
            except TimeoutError:
                blocked.set()
                return

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        endpoint = ProviderEndpoint("openai-chat", url, first_byte_s=60, idle_s=60)
        async with aclosing(stream(client_for(Transport()), endpoint, ASK)) as events:
            await anext(events)
            async with asyncio.timeout(60):
                await blocked.wait()
            sent_ahead = written

    assert 0 < sent_ahead < 40 * 1024 * 1024


async def test_a_connection_that_the_provider_closed_is_not_used_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_request(reader)
        writer.write(HEAD + chunk(text_frame("hi")) + chunk(DONE) + END)
        await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        for _ in range(3):
            events = await read_events(client_for(Transport()), url)
            assert isinstance(events[-1], StepFinish)
            # The client sees the end of the connection in one of the next turns of the loop.
            await asyncio.sleep(0.05)

    assert connections == 3


async def test_a_request_that_meets_the_close_of_its_connection_is_not_sent_twice() -> None:
    """A provider may have begun to work for it, so only a retry that the caller decides may repeat it."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(HEAD + chunk(text_frame("hi")) + chunk(DONE) + END)
        await writer.drain()
        requests.append(await read_request(reader))

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        first = await read_events(client_for(Transport()), url)
        last = (await read_events(client_for(Transport()), url))[-1]

    assert isinstance(first[-1], StepFinish)
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("network", True)
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("answer", "published"),
    [(b"", False), (HEAD, False), (HEAD + chunk(text_frame("hi")), True)],
    ids=["no answer", "no first byte", "silent in the middle"],
)
@pytest.mark.parametrize("transport", [Transport(), Transport(http2=True)], ids=["fast", "plain"])
async def test_a_provider_that_falls_silent_is_a_timeout(
    answer: bytes, transport: Transport, *, published: bool
) -> None:
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()
        await reader.read()
        closed.set()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        endpoint = ProviderEndpoint("openai-chat", url, first_byte_s=0.3, idle_s=0.3)
        async with asyncio.timeout(30):
            events = [event async for event in stream(client_for(transport), endpoint, ASK)]
            # Nobody waits for the rest of an answer that was given up.
            await closed.wait()

    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("timeout", not published)
    assert text_of(events) == ("hi" if published else "")


async def test_a_provider_that_takes_no_connection_is_a_timeout() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        # Connections that nobody accepts fill the queue of the kernel, which then answers nobody.
        waiting = [socket.socket() for _ in range(8)]
        for client in waiting:
            client.setblocking(False)  # noqa: FBT003 - a positional argument
            client.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with asyncio.timeout(30), clients(keepalive_max=4) as client_for:
            endpoint = ProviderEndpoint("openai-chat", url, connect_s=0.3, first_byte_s=60)
            last = [event async for event in stream(client_for(Transport()), endpoint, ASK)][-1]
        for client in waiting:
            client.close()

    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("timeout", True)
    assert "connection" in last.message


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "network"),
        (b"no http at all\r\n\r\n", "network"),
        (HEAD + b"zz\r\n", "network"),
        (HEAD + chunk(text_frame("hi")), "network"),
    ],
    ids=["hangs up", "no http", "bad chunk", "cut body"],
)
async def test_a_broken_answer_is_a_network_failure(answer: bytes, kind: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        last = (await read_events(client_for(Transport()), url))[-1]

    assert isinstance(last, ProviderFailure)
    assert last.kind == kind


async def test_a_port_that_nobody_serves_is_a_network_failure() -> None:
    async with provider(lambda _reader, writer: writer.drain()) as url:
        pass
    async with clients(keepalive_max=4) as client_for:
        last = (await read_events(client_for(Transport()), url))[-1]

    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("network", True)


async def test_a_key_with_a_line_break_is_refused_and_not_repeated() -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        endpoint = ProviderEndpoint("openai-chat", url, api_key="sk-secret\r\nx-evil: 1")
        last = [event async for event in stream(client_for(Transport()), endpoint, ASK)][-1]

    assert isinstance(last, ProviderFailure)
    assert last.kind == "invalid-request"
    assert "sk-secret" not in last.message
    assert requests == []


async def test_a_request_of_several_megabytes_arrives_whole_with_its_headers() -> None:
    requests: list[bytes] = []
    request = ModelRequest("m", turns=(UserTurn((TextPart("x" * 5_000_000),)),))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(HEAD + chunk(text_frame("hi")) + chunk(DONE) + END)
        await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        events = await read_events(client_for(Transport()), f"{url}/a%2Fb/v1", request)

    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert isinstance(events[-1], StepFinish)
    assert head.startswith(b"POST /a%2Fb/v1/chat/completions HTTP/1.1")
    assert b"x" * 5_000_000 in body
    names = [line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert len(names) == len(set(names))
    assert b"cookie" not in names


def recordings() -> list[tuple[str, Path]]:
    return [
        (protocol, path)
        for protocol in PROTOCOLS
        for path in sorted((FOLDER / protocol).glob("*/*.json"))
    ]


def pieces_of(body: bytes, split: str, dice: random.Random) -> Iterator[bytes]:
    """A body as its provider may cut it."""
    if split == "whole":
        yield body
        return
    place = 0
    while place < len(body):
        size = 1 if split == "byte by byte" else dice.choice((1, 7, 100, 5000))
        yield body[place : place + size]
        place += size


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recordings at {FOLDER}")
@pytest.mark.parametrize("split", ["whole", "random", "byte by byte"])
async def test_every_recorded_answer_reads_the_same_through_both_transports(split: str) -> None:
    bodies = [
        (protocol, body.encode())
        for protocol, path in recordings()
        if isinstance(body := orjson.loads(path.read_bytes())["response"].get("body_text"), str)
    ]
    dice = random.Random(7)  # noqa: S311 - the same pieces in every run
    current, cut = b"", "whole"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            writer.write(HEAD)
            for piece in pieces_of(current, cut, dice):
                writer.write(chunk(piece))
                if dice.random() < (0.02 if cut == "byte by byte" else 0.2):
                    await writer.drain()
                    await asyncio.sleep(0)
            writer.write(END)
            await writer.drain()

    async with provider(serve) as url, clients(keepalive_max=4) as client_for:
        for protocol, body in bodies:
            current, cut = body, split
            fast = await read_events(client_for(Transport()), url, protocol=protocol)
            cut = "whole"
            plain = await read_events(client_for(Transport(http2=True)), url, protocol=protocol)
            # The reads may end at other places, and chunks of one read are joined.
            assert join_chunks(fast) == join_chunks(plain)

    assert bodies
