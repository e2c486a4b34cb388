"""Server-sent events, incrementally: bytes in, frames out, however the bytes were split."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

FRAME_BYTES_MAX = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry", b":")


class Frame(NamedTuple):
    """One dispatched event; `data` is the joined data lines, undecoded."""

    data: bytes
    event: str | None = None
    id: str | None = None


class FrameTooLarge(ValueError):
    """A frame grew past the bound without ending: give the stream up."""


Pieces: TypeAlias = "tuple[bytes, Pieces] | None"
"""The reads of an unfinished frame, newest first: adding one costs the same however many there are."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a reader stands between two reads."""

    pieces: Pieces = None
    size: int = 0
    after_cr: bool = False
    begun: bool = False


START = Reading()


def feed(reading: Reading, chunk: bytes) -> tuple[Reading, list[Frame]]:
    """Take the next bytes; give back the frames they complete."""
    if not chunk:
        return reading, []
    text, after_cr = _unix(chunk, after_cr=reading.after_cr), chunk.endswith(b"\r")
    if reading.pieces is not None:
        if reading.begun and not _completes(reading.pieces[0], text):
            return _held((text, reading.pieces), reading.size + len(text), after_cr), []
        text = _joined((text, reading.pieces))
    if not reading.begun:
        if len(text) < len(_BOM) and _BOM.startswith(text):
            return Reading((text, None), len(text), after_cr), []
        text = text.removeprefix(_BOM)
    *blocks, tail = text.split(b"\n\n")
    frames = [frame for block in blocks if (frame := _frame(block)) is not None]
    return _held((tail, None) if tail else None, len(tail), after_cr), frames


def begins(opening: bytes) -> bool:
    """Whether a body that opens so may be an event stream; an empty one may."""
    text = opening.removeprefix(_BOM).lstrip(b"\r\n")
    return any(text.startswith(name) or name.startswith(text) for name in _FIELDS)


def _completes(newest: bytes, text: bytes) -> bool:
    """Whether a blank line ends with this text; it may have begun before."""
    return b"\n\n" in text or (text.startswith(b"\n") and newest.endswith(b"\n")) or not newest


def _held(pieces: Pieces, size: int, after_cr: bool) -> Reading:  # noqa: FBT001 - one fact
    if size > FRAME_BYTES_MAX:
        raise FrameTooLarge(f"A frame is longer than {FRAME_BYTES_MAX} bytes")
    return Reading(pieces, size, after_cr, begun=True)


def _joined(pieces: Pieces) -> bytes:
    parts: list[bytes] = []
    while pieces is not None:
        part, pieces = pieces
        parts.append(part)
    return b"".join(reversed(parts))


def _unix(chunk: bytes, *, after_cr: bool) -> bytes:
    """Every line ending as LF. A CR ends its line at once, so an LF that follows it is dropped."""
    if after_cr and chunk.startswith(b"\n"):
        chunk = chunk[1:]
    if b"\r" not in chunk:
        return chunk
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _frame(block: bytes) -> Frame | None:
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
