"""Bad bodies over real HTTP, on every protocol: a classified failure, and the text before it stays."""

import asyncio
import gzip
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, TypeAlias

import httpx
import orjson
import pytest

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_llm.transport import Transport, clients
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    StepFinish,
    TextChunk,
    ToolCall,
)
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

pytestmark = pytest.mark.integration

ASK = ModelRequest("m", turns=(UserTurn((TextPart("hi"),)),))
PAGE = b"<!doctype html><html><body>\n\nBad gateway\n\n</body></html>"
MEGABYTE = 1024 * 1024
Frames: TypeAlias = list[Any]


def anthropic(text: str, arguments: str | None = None) -> tuple[Frames, Frames]:
    begin: dict[str, Any] = {"type": "content_block_start", "index": 0}
    delta: dict[str, Any] = {"type": "content_block_delta", "index": 0}
    text_frames: Frames = [
        {"type": "message_start", "message": {"id": "a"}},
        begin | {"content_block": {"type": "text"}},
        delta | {"delta": {"type": "text_delta", "text": text}},
    ]
    call_frames: Frames = [
        begin | {"index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "n"}},
        delta | {"index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}},
        {"type": "content_block_stop", "index": 1},
    ]
    end: Frames = [{"type": "message_stop"}]
    return text_frames, [*(call_frames if arguments else ()), *end]


def responses(text: str, arguments: str | None = None) -> tuple[Frames, Frames]:
    text_frames: Frames = [{"type": "response.output_text.delta", "output_index": 0, "delta": text}]
    item = {"type": "function_call", "call_id": "t", "name": "n", "arguments": arguments}
    call_frames: Frames = [{"type": "response.output_item.done", "output_index": 1, "item": item}]
    end: Frames = [{"type": "response.completed", "response": {}}]
    return text_frames, [*(call_frames if arguments else ()), *end]


def chat(text: str, arguments: str | None = None) -> tuple[Frames, Frames]:
    call = {"index": 0, "id": "t", "function": {"name": "n", "arguments": arguments}}
    call_frames: Frames = [{"choices": [{"delta": {"tool_calls": [call]}}]}]
    end: Frames = [{"choices": [{"finish_reason": "stop"}]}, "[DONE]"]
    return [{"choices": [{"delta": {"content": text}}]}], [
        *(call_frames if arguments else ()),
        *end,
    ]


def gemini(text: str, arguments: str | None = None) -> tuple[Frames, Frames]:
    args = orjson.loads(arguments or "{}")
    call = {"functionCall": {"name": "n", "id": "t", "args": args}}
    call_frames: Frames = [{"candidates": [{"content": {"parts": [call]}}]}]
    end: Frames = [{"candidates": [{"finishReason": "STOP"}]}]
    text_frames: Frames = [{"candidates": [{"content": {"parts": [{"text": text}]}}]}]
    return text_frames, [*(call_frames if arguments else ()), *end]


STREAMS: dict[str, Callable[..., tuple[Frames, Frames]]] = {
    "anthropic-messages": anthropic,
    "openai-responses": responses,
    "openai-chat": chat,
    "gemini": gemini,
}
every_protocol = pytest.mark.parametrize("protocol", STREAMS)


def body(frames: Frames) -> bytes:
    texts = (frame.encode() if isinstance(frame, str) else orjson.dumps(frame) for frame in frames)
    return b"".join(b"data: " + text + b"\n\n" for text in texts)


def whole_body(protocol: str, text: str = "hi", arguments: str | None = None) -> bytes:
    text_frames, end = STREAMS[protocol](text, arguments)
    return body(text_frames) + body(end)


# HTTP/1.1 goes through aiohttp, everything else through httpx's own transport.
TRANSPORTS = (Transport(), Transport(http2=True))


@dataclass(slots=True)
class HttpAnswer:
    """One HTTP answer. `cut` leaves out its end, `stalls` keeps the connection open."""

    body: bytes
    type: str = "text/event-stream"
    status: int = 200
    encoding: str | None = None
    cut: bool = False
    stalls: bool = False
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)

    def head(self) -> bytes:
        encoded = f"content-encoding: {self.encoding}\r\n" if self.encoding else ""
        return (
            f"HTTP/1.1 {self.status} X\r\ncontent-type: {self.type}\r\n{encoded}"
            "transfer-encoding: chunked\r\n\r\n"
        ).encode()


@asynccontextmanager
async def serve_answer(answer: HttpAnswer) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        chunk = b"%x\r\n" % len(answer.body) + answer.body + b"\r\n"
        writer.write(answer.head() + chunk)
        if answer.stalls:
            await reader.read()
            answer.disconnected.set()
        elif answer.cut:
            writer.write(b"ff\r\ndata: ")
            await writer.drain()
            writer.get_extra_info("socket").setsockopt(
                SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
            )
        else:
            writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def play(protocol: str, answer: HttpAnswer) -> list[ProviderEvent]:
    """The events of one answer. Both transports must read the same."""
    async with serve_answer(answer) as url, clients(keepalive_max=4) as client_for:
        endpoint = ProviderEndpoint(protocol, url, first_byte_s=20, idle_s=20)
        read = [
            [event async for event in stream(client_for(transport), endpoint, ASK)]
            for transport in TRANSPORTS
        ]
    ends = [events[-1] for events in read]
    assert text_of(read[0]) == text_of(read[1]) or answer.cut
    assert type(ends[0]) is type(ends[1])
    assert getattr(ends[0], "kind", None) == getattr(ends[1], "kind", None)
    return read[0]


async def failure_of(protocol: str, answer: HttpAnswer) -> ProviderFailure:
    last = (await play(protocol, answer))[-1]
    assert isinstance(last, ProviderFailure)
    return last


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextChunk))


@every_protocol
@pytest.mark.parametrize(
    "bad", [b'{"cut', b"nope", b"[1]", b"\xff\xfe", b"17", b"{" * 2000, b'{"a":' * 900 + b"}"]
)
async def test_a_bad_frame_is_a_malformed_stream_and_the_text_before_it_is_kept(
    protocol: str, bad: bytes
) -> None:
    before, after = STREAMS[protocol]("hi")
    frames = body(before) + b"data: " + bad + b"\n\n" + body(after)

    events = await play(protocol, HttpAnswer(frames))

    assert text_of(events) == "hi"
    assert isinstance(events[-1], ProviderFailure)
    assert (events[-1].kind, events[-1].retryable) == ("malformed-stream", False)


@every_protocol
@pytest.mark.parametrize(
    ("status", "type_", "kind"),
    [
        (200, "application/json", "malformed-stream"),
        (200, "text/html", "malformed-stream"),
        (200, "text/event-stream", "malformed-stream"),
        (404, "text/html", "invalid-request"),
        (502, "text/html", "server-error"),
        (503, "text/html", "overloaded"),
    ],
)
async def test_a_page_is_told_by_its_status_and_never_taken_for_a_stream(
    protocol: str, status: int, type_: str, kind: str
) -> None:
    failure = await failure_of(protocol, HttpAnswer(PAGE, type_, status))

    assert failure.kind == kind


@every_protocol
async def test_a_body_that_says_it_is_compressed_is_read(protocol: str) -> None:
    answer = HttpAnswer(gzip.compress(whole_body(protocol)), encoding="gzip")

    events = await play(protocol, answer)

    assert text_of(events) == "hi"
    assert isinstance(events[-1], StepFinish)


@every_protocol
async def test_a_refusal_that_is_compressed_is_read(protocol: str) -> None:
    error_body = gzip.compress(b'{"error":{"message":"slow down"}}')

    failure = await failure_of(protocol, HttpAnswer(error_body, "application/json", 429, "gzip"))

    assert (failure.kind, failure.message) == ("rate-limit", "slow down")


@every_protocol
@pytest.mark.parametrize("encoding", ["gzip", None, "zstd"])
async def test_a_body_in_no_known_code_is_a_malformed_stream(
    protocol: str, encoding: str | None
) -> None:
    """Garbage that claims to be compressed, and a compressed body that does not say so."""
    garbage = b"\x00\x01garbage" if encoding == "gzip" else gzip.compress(whole_body(protocol))

    failure = await failure_of(protocol, HttpAnswer(garbage, encoding=encoding))

    assert (failure.kind, failure.retryable) == ("malformed-stream", False)


@every_protocol
async def test_a_byte_order_mark_changes_nothing(protocol: str) -> None:
    events = await play(protocol, HttpAnswer(b"\xef\xbb\xbf" + whole_body(protocol)))

    assert text_of(events) == "hi"
    assert isinstance(events[-1], StepFinish)


@every_protocol
async def test_a_frame_of_ten_megabytes_is_read(protocol: str) -> None:
    events = await play(protocol, HttpAnswer(whole_body(protocol, "x" * 10 * MEGABYTE)))

    assert len(text_of(events)) == 10 * MEGABYTE
    assert isinstance(events[-1], StepFinish)


async def test_a_frame_without_an_end_is_given_up() -> None:
    before, _ = chat("hi")

    events = await play("openai-chat", HttpAnswer(body(before) + b"data: " + b"x" * 17 * MEGABYTE))

    assert text_of(events) == "hi"
    assert isinstance(events[-1], ProviderFailure)
    assert (events[-1].kind, events[-1].retryable) == ("malformed-stream", False)


@every_protocol
@pytest.mark.parametrize("arguments", ["[1]", '"text"', "7"])
async def test_arguments_that_are_no_object_are_a_call_that_says_so(
    protocol: str, arguments: str
) -> None:
    events = await play(protocol, HttpAnswer(whole_body(protocol, "hi", arguments)))

    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert call.invalid == "The arguments are not a JSON object"
    assert isinstance(events[-1], StepFinish)


@every_protocol
async def test_a_connection_cut_in_mid_frame_keeps_the_text(protocol: str) -> None:
    before, _ = STREAMS[protocol]("hi")

    events = await play(protocol, HttpAnswer(body(before), cut=True))

    assert isinstance(events[-1], ProviderFailure)
    assert events[-1].kind == "network"
    assert (text_of(events), events[-1].retryable) in {("hi", False), ("", True)}


@every_protocol
@pytest.mark.parametrize("how", ["closed", "cancelled"])
@pytest.mark.parametrize("transport", TRANSPORTS, ids=["aiohttp", "httpcore"])
async def test_a_reader_that_stops_closes_the_socket(
    protocol: str, how: str, transport: Transport
) -> None:
    before, _ = STREAMS[protocol]("hi")
    answer = HttpAnswer(body(before), stalls=True)
    first_event = asyncio.Event()

    async def listen(url: str, client: httpx.AsyncClient) -> None:
        async with aclosing(stream(client, ProviderEndpoint(protocol, url), ASK)) as events:
            async for event in events:
                if isinstance(event, TextChunk):
                    first_event.set()
                    if how == "closed":
                        return

    async with serve_answer(answer) as url, clients(keepalive_max=4) as client_for:
        listening = asyncio.create_task(listen(url, client_for(transport)))
        await asyncio.wait_for(first_event.wait(), 20)
        if how == "cancelled":
            listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

        await asyncio.wait_for(answer.disconnected.wait(), 20)
