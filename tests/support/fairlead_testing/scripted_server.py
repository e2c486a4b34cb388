"""A server of the NATS protocol in this process: a test decides what it answers, and when it reads."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Final, NamedTuple

from fairlead_eventlog.jetstream.thin.frames import encode_headers
from fairlead_schema.identity.nats_address import NatsAddress

MAX_PAYLOAD: Final = 8 * 1024 * 1024


class Publish(NamedTuple):
    """What a client has published."""

    subject: str
    reply: str
    raw_headers: bytes
    body: bytes


class ScriptedServer:
    """Takes one client at a time. It routes nothing by itself."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[Publish] = asyncio.Queue()
        """What came, in order."""
        self.reads = asyncio.Event()
        """While this is not set, the server reads nothing."""
        self.reads.set()
        self.keeps = True
        """Whether it parses what clients publish; otherwise it only discards the bytes."""
        self.connections = 0
        self._subscriptions: dict[str, str] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._ended: set[asyncio.Event] = set()
        self.port = 0

    @property
    def address(self) -> NatsAddress:
        return NatsAddress(f"nats://127.0.0.1:{self.port}")

    async def answer(self, reply: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Deliver a message to the subscription that a subject fits."""
        prefix = reply.rpartition(".")[0]
        sid = next(
            sid for sid, pattern in self._subscriptions.items() if pattern in {reply, f"{prefix}.*"}
        )
        raw = b"" if headers is None else encode_headers(headers)
        size = len(raw) + len(body)
        head = (
            f"MSG {reply} {sid} {size}"
            if headers is None
            else f"HMSG {reply} {sid} {len(raw)} {size}"
        )
        assert self._writer is not None
        self._writer.write(head.encode() + b"\r\n" + raw + body + b"\r\n")
        await self._writer.drain()

    async def find_nobody(self, reply: str) -> None:
        """Say that nobody listens on the subject of a request."""
        await self.answer(reply, b"", {"Status": "503"})

    def drop_client(self) -> None:
        """End the connection."""
        assert self._writer is not None
        self._subscriptions.clear()
        self._writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak to one client until it leaves."""
        self._writer = writer
        ended = asyncio.Event()
        self._ended.add(ended)
        info = {"version": "2.15.1", "headers": True, "jetstream": True, "max_payload": MAX_PAYLOAD}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        self.connections += 1
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                await self._obey(line.decode().split(), reader, writer)
                await self.reads.wait()
                if not self.keeps:
                    while await reader.read(1 << 20):
                        pass
        with suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    async def wait_for_clients(self) -> None:
        """Wait until every client has left."""
        for ended in self._ended:
            await ended.wait()

    async def _obey(
        self, words: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match words:
            case ["PING"]:
                writer.write(b"PONG\r\n")
            case ["SUB", subject, *_, sid]:
                self._subscriptions[sid] = subject
            case ["UNSUB", sid, *_]:
                self._subscriptions.pop(sid, None)
            case ["PUB", subject, *reply, size]:
                body = await reader.readexactly(int(size) + 2)
                self.published.put_nowait(Publish(subject, "".join(reply), b"", body[:-2]))
            case ["HPUB", subject, *reply, head, size]:
                whole = await reader.readexactly(int(size) + 2)
                raw, body = whole[: int(head)], whole[int(head) : -2]
                self.published.put_nowait(Publish(subject, "".join(reply), raw, body))
            case _:
                pass


@asynccontextmanager
async def run_scripted_server() -> AsyncIterator[ScriptedServer]:
    """A server on a free port of the loopback for the length of a block."""
    server = ScriptedServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.reads.set()
        await server.wait_for_clients()
        listener.close()
        await listener.wait_closed()
