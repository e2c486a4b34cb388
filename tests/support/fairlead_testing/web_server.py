"""A web server on loopback that answers as a test tells it to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Site:
    """What is served where, and what was asked for."""

    port: int = 0
    pages: dict[str, bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]] = field(
        default_factory=dict
    )
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


def reply(body: bytes, *headers: str, status: str = "200 OK", mime: str = "text/html") -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-type: {mime}", f"content-length: {len(body)}"]
    return "\r\n".join([*head, *headers, "connection: close", "", ""]).encode() + body


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """A site for the length of a block."""
    site_ = Site()

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = head[0].split()[1]
            site_.asked.append((path, headers, body))
            page = site_.pages.get(path, reply(b"nothing", status="404 Not Found"))
            if isinstance(page, bytes):
                writer.write(page)
                await writer.drain()
            else:
                await page(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(on_client, "127.0.0.1", 0)
    site_.port = server.sockets[0].getsockname()[1]
    try:
        yield site_
    finally:
        server.close()
