"""Server-sent events, incrementally: bytes in, frames out, however the bytes were split."""

from dataclasses import dataclass
from typing import NamedTuple

FRAME_BYTES_MAX = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Frame(NamedTuple):
    """One dispatched event; `data` is the joined data lines, undecoded."""

    data: bytes
    event: str | None = None


class FrameTooLarge(ValueError):
    """A frame grew past the bound without ending: give the stream up."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a reader stands between two reads."""

    tail: bytes = b""
    after_cr: bool = False
    begun: bool = False


START = Reading()


def feed(reading: Reading, chunk: bytes) -> tuple[Reading, list[Frame]]:
    """Take the next bytes; give back the frames they complete."""
    if not chunk:
        return reading, []
    text = reading.tail + _unix(chunk, after_cr=reading.after_cr)
    after_cr = chunk.endswith(b"\r")
    if not reading.begun:
        if len(text) < len(_BOM) and _BOM.startswith(text):
            return Reading(text, after_cr), []
        text = text.removeprefix(_BOM)
    *blocks, tail = text.split(b"\n\n")
    if len(tail) > FRAME_BYTES_MAX:
        raise FrameTooLarge(f"A frame is longer than {FRAME_BYTES_MAX} bytes")
    frames = [frame for block in blocks if (frame := _frame(block)) is not None]
    return Reading(tail, after_cr, begun=True), frames


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
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ").decode(errors="replace")
    return Frame(b"\n".join(data), event) if data else None
