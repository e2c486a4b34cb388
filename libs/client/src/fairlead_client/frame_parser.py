"""Parses server-sent events: bytes in, frames out, for any split of the bytes."""

from typing import Final, NamedTuple

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024


class StreamFrame(NamedTuple):
    """One event or one comment of a stream. A comment has no data."""

    data: bytes | None
    event: str | None = None
    id: str | None = None
    comment: str | None = None


class FrameTooLong(ValueError):
    """A frame is longer than any frame of Fairlead."""


class FrameParser:
    """Keeps the beginning of a frame until the rest of it comes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0
        """So much of the buffer holds no end of a frame."""
        self._ends_with_cr = False

    def feed(self, chunk: bytes) -> list[StreamFrame]:
        """The frames that this chunk completes. Raises FrameTooLong."""
        self._buffer += self._with_unix_newlines(chunk)
        end = self._buffer.rfind(b"\n\n", max(self._seen - 1, 0))
        if end < 0:
            self._seen = len(self._buffer)
            if self._seen > FRAME_BYTES_MAX:
                raise FrameTooLong(f"a frame is longer than {FRAME_BYTES_MAX} bytes")
            return []
        complete = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        self._seen = len(self._buffer)
        return [frame for block in complete.split(b"\n\n") if (frame := _parse(block)) is not None]

    def _with_unix_newlines(self, chunk: bytes) -> bytes:
        """A CR ends its line at once, so an LF behind it in the next chunk is dropped."""
        if self._ends_with_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._ends_with_cr = chunk.endswith(b"\r")
        if b"\r" not in chunk:
            return chunk
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _parse(block: bytes) -> StreamFrame | None:
    """The frame of a block of lines; None for a block that says nothing."""
    data: list[bytes] = []
    event: str | None = None
    id_: str | None = None
    comment: str | None = None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id":
            id_ = value.decode(errors="replace")
        elif name == b"event":
            event = value.decode(errors="replace")
        elif not name and line:
            comment = value.decode(errors="replace")
    if not data:
        return None if comment is None else StreamFrame(None, comment=comment)
    return StreamFrame(data[0] if len(data) == 1 else b"\n".join(data), event, id_)
