"""JSON-RPC messages, one per line. A line that is no message is answered with an error of the protocol."""

import asyncio
import json
from typing import Any, Final, TypeAlias

from acp import RequestError

Json: TypeAlias = dict[str, Any]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
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
        line = json.dumps(explain_answer(message), separators=(",", ":")).encode() + b"\n"
        async with self._sending:
            self._writer.write(line)
            await self._writer.drain()

    async def receive(self) -> Json | None:
        """The next message; None at the end of the input."""
        while (line := await self._read_line()) is not None:
            refusal = _invalid(f"the line has more than {self._line_bytes_max} bytes")
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
        if b"\\ud" in line or b"\\uD" in line:
            message = json.loads(_mend_unicode(json.dumps(message, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        return RequestError(PARSE_ERROR, f"The line is not JSON: {error}")
    if not isinstance(message, dict):
        return _invalid("a message is an object; batches are not supported")
    if message.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc must be "2.0"')
    if not isinstance(message.get("method", ""), str):
        return _invalid("method must be a text")
    if "method" not in message and "id" not in message:
        return _invalid("the message has no method and no id")
    return message


def _invalid(reason: str) -> RequestError:
    return RequestError(INVALID_REQUEST, f"Invalid request: {reason}")


def explain_answer(message: Json) -> Json:
    """The answer to an invalid request, with a sentence in place of "Invalid params".

    The package of the protocol repeats the whole input in its errors, which may be long.
    """
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(data, dict) or not data.get("errors"):
        return message
    found = [
        {"field": ".".join(str(part) for part in one["loc"]), "reason": one["msg"]}
        for one in data["errors"]
    ]
    sentence = f"{found[0]['field'] or 'params'}: {found[0]['reason']}"
    return {**message, "error": {**error, "message": sentence, "data": {"errors": found}}}


def _mend_unicode(text: str) -> str:
    """The text with a sign in place of each half of a character. Editors cut texts anywhere."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
