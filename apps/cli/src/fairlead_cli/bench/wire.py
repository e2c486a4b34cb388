"""A load generator's HTTP: one socket, one request at a time, nothing parsed that is not needed.

The figures are the system's, so the generator must cost little beside it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self
from urllib.parse import urlsplit

import orjson

OK = b"HTTP/1.1 200"


class Wire:
    """One kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def open(cls, base_url: str) -> AsyncIterator[Self]:
        """A connection for the length of a block."""
        place = urlsplit(base_url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        wire = cls(reader, writer)
        try:
            yield wire
        finally:
            wire._writer.close()

    async def _again(self) -> None:
        """A server closes what stood idle for some seconds, as a slow turn between two posts may."""
        host, port = self._writer.get_extra_info("peername")[:2]
        self._writer.close()
        self._reader, self._writer = await asyncio.open_connection(host, port)

    async def post(self, path: str, body: object) -> bytes:
        """One request, answered with 200; its body."""
        content = orjson.dumps(body)
        if self._reader.at_eof():
            await self._again()
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(OK), head
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        return await self._reader.readexactly(length)

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """What a streamed answer brings, as it comes, still in its chunks."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(OK), head
        while piece := await self._reader.read(65536):
            yield piece
