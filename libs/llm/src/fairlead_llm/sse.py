"""An incremental parser of server-sent events: bytes in, frames out, for any split of the bytes."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

FRAME_BYTES_MAX = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry", b":")


class Frame(NamedTuple):
    """One server-sent event. `data` holds the joined data lines as bytes."""

    data: bytes
    event: str | None = None
    id: str | None = None


class FrameTooLarge(ValueError):
    """A frame is longer than the limit: give up the stream."""


Pieces: TypeAlias = "tuple[bytes, Pieces] | None"
"""The chunks of an unfinished frame, newest first, and each longer than the one after it.

So a frame that comes byte by byte is a few pieces, and each byte is copied a few times.
"""


@dataclass(frozen=True, slots=True)
class ParserState:
    """The parser between two chunks: the chunks of the unfinished frame, and their size."""

    pieces: Pieces = None
    size: int = 0
    after_cr: bool = False
    bom_checked: bool = False


START = ParserState()


def feed(state: ParserState, chunk: bytes) -> tuple[ParserState, list[Frame]]:
    """Parse the next chunk, and return the frames that it completes."""
    if not chunk:
        return state, []
    text, after_cr = _with_unix_newlines(chunk, after_cr=state.after_cr), chunk.endswith(b"\r")
    if state.pieces is not None:
        if state.bom_checked and not _completes_frame(state.pieces[0], text):
            return _buffer(_add(text, state.pieces), state.size + len(text), after_cr), []
        text = _join((text, state.pieces))
    if not state.bom_checked:
        if len(text) < len(_BOM) and _BOM.startswith(text):
            return ParserState((text, None), len(text), after_cr), []
        text = text.removeprefix(_BOM)
    *blocks, tail = text.split(b"\n\n")
    frames = [frame for block in blocks if (frame := _parse_frame(block)) is not None]
    return _buffer((tail, None) if tail else None, len(tail), after_cr), frames


def flush(state: ParserState) -> list[Frame]:
    """The frame at the end of a body, if its last line is complete and only the blank line is missing."""
    text = _join(state.pieces)
    frame = _parse_frame(text.removesuffix(b"\n")) if text.endswith(b"\n") else None
    return [] if frame is None else [frame]


def may_be_event_stream(opening: bytes) -> bool:
    """Whether a body with this opening may be an event stream. An empty body may be one."""
    text = opening.removeprefix(_BOM).lstrip(b"\r\n")
    return any(text.startswith(name) or name.startswith(text) for name in _FIELDS)


def _completes_frame(newest: bytes, text: bytes) -> bool:
    """Whether this text completes a blank line, which may begin at the end of `newest`."""
    return b"\n\n" in text or (text.startswith(b"\n") and newest.endswith(b"\n")) or not newest


def _buffer(pieces: Pieces, size: int, after_cr: bool) -> ParserState:  # noqa: FBT001
    if size > FRAME_BYTES_MAX:
        raise FrameTooLarge(f"A frame is longer than {FRAME_BYTES_MAX} bytes")
    return ParserState(pieces, size, after_cr, bom_checked=True)


def _add(text: bytes, pieces: Pieces) -> Pieces:
    """Add a chunk, joined with the newer pieces that are not longer."""
    parts = [text]
    size = len(text)
    while pieces is not None and len(pieces[0]) <= size:
        part, pieces = pieces
        parts.append(part)
        size += len(part)
    return (text if len(parts) == 1 else b"".join(reversed(parts)), pieces)


def _join(pieces: Pieces) -> bytes:
    parts: list[bytes] = []
    while pieces is not None:
        part, pieces = pieces
        parts.append(part)
    return b"".join(reversed(parts))


def _with_unix_newlines(chunk: bytes, *, after_cr: bool) -> bytes:
    """The chunk with LF line endings. A CR ends its line at once, so a following LF is dropped."""
    if after_cr and chunk.startswith(b"\n"):
        chunk = chunk[1:]
    if b"\r" not in chunk:
        return chunk
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _parse_frame(block: bytes) -> Frame | None:
    if block.startswith(b"data: ") and b"\n" not in block:
        return Frame(block[6:])
    data: list[bytes] = []
    event: str | None = None
    id_: str | None = None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ").decode(errors="replace")
        elif name == b"id":
            id_ = value.removeprefix(b" ").decode(errors="replace")
    return Frame(b"\n".join(data), event, id_) if data else None
