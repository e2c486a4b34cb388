"""A gateway that a test scripts, on a real socket: what it answers, and where its connections break."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from fairlead_schema.errors import Refused


class Asked(NamedTuple):
    """One request that came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedGateway:
    """Answers each request with the next script of its path. The last script stays."""

    port: int = 0
    scripts: dict[str, list[bytes]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, path: str, *answers: bytes) -> None:
        """The answers of a path, in their order. Empty bytes break the connection."""
        self.scripts[path] = list(answers)

    def asked_for(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            raw = await reader.readexactly(int(headers.get("content-length", "0")))
            method, target, _version = head[0].split()
            path, _, query = target.partition("?")
            body = json.loads(raw) if raw else None
            self.asked.append(Asked(method, path, query, headers, body))
            answers = self.scripts.get(path, [])
            if answers:
                writer.write(answers.pop(0) if len(answers) > 1 else answers[0])
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def reply(body: Any, status: int = 200, *headers: str, mime: str = "application/json") -> bytes:  # noqa: ANN401
    """A whole answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} -", f"content-type: {mime}", f"content-length: {len(raw)}"]
    return "\r\n".join([*lines, *headers, "connection: close", "", ""]).encode() + raw


def refuse(refusal: Refused, *headers: str) -> bytes:
    return reply(refusal.body.wire(), refusal.status, *headers)


def stream(*frames: bytes, log: str = "log_1") -> bytes:
    """The beginning of a stream whose connection breaks behind these frames."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nfairlead-log: {log}\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(frame), frame) for frame in frames if frame)
    return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunks


def event(seq: int, type_: str = "session.next.synthetic", **data: Any) -> bytes:  # noqa: ANN401
    """The frame of a durable event."""
    durable = {"aggregateID": "ses_a", "seq": seq, "version": data.pop("version", 1)}
    body = {
        "id": f"evt_{seq}",
        "type": type_,
        "data": {"timestamp": 1, "sessionID": "ses_a", **data},
        "durable": durable,
    }
    return f"id: {seq}\ndata: {json.dumps(body)}\n\n".encode()


def fragment(text: str, index: int) -> bytes:
    """The frame of a live fragment of one text."""
    data = {"assistantMessageID": "msg_x", "textID": "t", "delta": text, "index": index}
    body = {"id": "evt_live", "type": "session.next.text.delta", "data": data}
    return f"data: {json.dumps(body)}\n\n".encode()


def failure(refusal: Refused) -> bytes:
    """The last frame of a stream that fails."""
    body = json.dumps(refusal.body.wire())
    return f"event: effect/httpapi/stream/failure\ndata: {body}\n\n".encode()


Script = Callable[..., None]


@asynccontextmanager
async def scripted_gateway() -> AsyncIterator[ScriptedGateway]:
    gateway = ScriptedGateway()
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    gateway.port = server.sockets[0].getsockname()[1]
    try:
        yield gateway
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
async def gateway() -> AsyncIterator[ScriptedGateway]:
    async with scripted_gateway() as running:
        yield running
