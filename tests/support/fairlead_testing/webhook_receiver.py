"""A receiver of webhooks: a real HTTP server that a test tells how to answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

WAIT_S = 60.0


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def delivery(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event


Reply: TypeAlias = Callable[[Received], str | None]
"""The status line and headers of the answer; None: no answer."""
OK = "200 OK"


def accept(_request: Received) -> str:
    return OK


@dataclass
class Receiver:
    """What came, and how to answer what comes."""

    url: str
    received: list[Received] = field(default_factory=list)
    answers: dict[str, Reply] = field(default_factory=dict)
    """How to answer on a path. Without one, everything is accepted."""

    def on(self, path: str) -> list[Received]:
        return [request for request in self.received if request.path == path]

    async def until(self, path: str, count: int = 1) -> list[Received]:
        """Wait until so many requests came to a path."""
        async with asyncio.timeout(WAIT_S):
            while len(self.on(path)) < count:
                await asyncio.sleep(0.02)
        return self.on(path)


@asynccontextmanager
async def receive_webhooks() -> AsyncIterator[Receiver]:
    """A receiver on a free port of loopback, for the length of a block."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            request = await _read(reader)
            receiver.received.append(request)
            answer = receiver.answers.get(request.path, accept)
            reply = answer(request)
            if reply is None:
                await ended.wait()
            writer.write(f"HTTP/1.1 {reply}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    receiver = Receiver(f"http://127.0.0.1:{port}")
    try:
        yield receiver
    finally:
        ended.set()
        server.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(head[0].split(" ")[1], headers, body)
