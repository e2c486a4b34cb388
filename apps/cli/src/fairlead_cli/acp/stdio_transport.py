"""JSON-RPC messages, one per line. A line that is no message is answered with an error of the protocol."""

import asyncio
import json
from typing import Any, Final, TypeAlias

from acp import RequestError

Json: TypeAlias = dict[str, Any]

LINE_BYTES_MAX: Final = 32 * 1024 * 1024


class StdioTransport:
    """The two pipes to an editor. It implements the transport of the protocol's package."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        line_bytes_max: int = LINE_BYTES_MAX,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._line_bytes_max = line_bytes_max
        self._sending = asyncio.Lock()

    async def send(self, message: Json) -> None:
        """Write one message as a line."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._sending:
            self._writer.write(line)
            await self._writer.drain()

    async def receive(self) -> Json | None:
        """The next message; None at the end of the input."""
        while (line := await self._read_line()) is not None:
            refusal = RequestError.invalid_request({"lineBytesMax": self._line_bytes_max})
            if line:
                found = parse_line(line)
                if isinstance(found, dict):
                    return found
                refusal = found
            await self.send({"jsonrpc": "2.0", "id": None, "error": refusal.to_error_obj()})
        return None

    async def close(self) -> None:
        self._writer.close()

    async def _read_line(self) -> bytes | None:
        """The next line that is not empty; nothing for a line that is too long, None at the end."""
        kept: list[bytes] = []
        size = 0
        while True:
            try:
                piece = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                piece = await self._reader.readexactly(overrun.consumed)
            except asyncio.IncompleteReadError as end:
                # A line without its end may be half a message.
                return None if not end.partial.strip() or kept else end.partial
            size += len(piece)
            if size <= self._line_bytes_max:
                kept.append(piece)
            if not piece.endswith(b"\n"):
                continue
            if size > self._line_bytes_max:
                return b""
            if line := b"".join(kept).strip():
                return line
            kept, size = [], 0


def parse_line(line: bytes) -> Json | RequestError:
    """The message of a line, or why it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return RequestError.parse_error({"reason": str(error)})
    if not isinstance(message, dict):
        return RequestError.invalid_request({"reason": "a message is an object; batches are not"})
    if message.get("jsonrpc") != "2.0":
        return RequestError.invalid_request({"reason": 'jsonrpc must be "2.0"'})
    if not isinstance(message.get("method", ""), str):
        return RequestError.invalid_request({"reason": "method must be a text"})
    if "method" not in message and "id" not in message:
        return RequestError.invalid_request({"reason": "the message has no method and no id"})
    return message
