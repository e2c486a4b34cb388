"""The HTTP connection of the load generator: one socket, one request at a time, minimal parsing.

The generator must use little processor time, because it shares the machine with the services.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self
from urllib.parse import urlsplit

import orjson

OK = b"HTTP/1.1 200"


class LoadConnection:
    """One HTTP keep-alive connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        authorization = "" if key is None else f"authorization: Bearer {key}\r\n"
        self._headers = f"host: 127.0.0.1\r\n{authorization}"

    @classmethod
    @asynccontextmanager
    async def open(cls, base_url: str) -> AsyncIterator[Self]:
        """A connection for the length of a block. The password in the URL is the key."""
        address = urlsplit(base_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        connection = cls(reader, writer, address.password)
        try:
            yield connection
        finally:
            connection._writer.close()

    async def _reconnect(self) -> None:
        """Open the connection again: the server closes it when it is idle for some seconds."""
        host, port = self._writer.get_extra_info("peername")[:2]
        self._writer.close()
        self._reader, self._writer = await asyncio.open_connection(host, port)

    async def post(self, path: str, body: object) -> bytes:
        """Post one request and return the body of its 200 response."""
        content = orjson.dumps(body)
        if self._reader.at_eof():
            await self._reconnect()
        self._writer.write(
            f"POST {path} HTTP/1.1\r\n{self._headers}content-type: application/json\r\n"
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
        """The bytes of a streamed response as they come, with the chunk framing of HTTP."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._headers}\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(OK), head
        while piece := await self._reader.read(65536):
            yield piece
