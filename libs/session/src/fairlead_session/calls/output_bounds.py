"""Bounding: of a text that is too long the model sees both ends, and where the whole is kept.

The text itself may be larger than memory, so it is measured piece by piece: what bounding needs of
it is its size and as much of both ends as could ever be shown.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 2_000
BYTES_MAX: Final = 51_200

# What stands between head, marker and tail: two blank lines, which are four newlines.
_GAP: Final = "\n\n"
_GAPS: Final = 4


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How much of one settlement's text the model sees. Exactly that much still fits."""

    lines: int = LINES_MAX
    bytes: int = BYTES_MAX


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """A measured text: its size as UTF-8, its newlines, and both its ends."""

    bytes: int
    newlines: int
    head: str
    tail: str

    def fits(self, limits: OutputLimits) -> bool:
        """Whether the text may be shown whole."""
        return self.bytes <= limits.bytes and self.newlines < limits.lines


def measure_text(pieces: Iterable[bytes], limits: OutputLimits) -> MeasuredText:
    """Measure a text, given in pieces. What is no UTF-8 counts as it will be shown."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = newlines = 0
    head = tail = ""
    for text in _decoded(decoder, pieces):
        size += len(text.encode())
        newlines += text.count("\n")
        # A character is at least a byte, so that many characters are always enough.
        if len(head) < limits.bytes:
            head += text[: limits.bytes - len(head)]
        tail = (tail + text)[-limits.bytes :]
    return MeasuredText(size, newlines, head, tail)


def preview(sample: MeasuredText, marker: str, limits: OutputLimits) -> str:
    """Head, marker and tail within both limits; the head has the larger half (J-31, J-32)."""
    lines = limits.lines - _GAPS
    room = limits.bytes - len(marker.encode()) - _GAPS
    if lines <= 0 or room <= 0:
        return _first(marker, limits.bytes)
    head = "\n".join(sample.head.split("\n", (lines + 1) // 2)[: (lines + 1) // 2])
    tail = "\n".join(sample.tail.rsplit("\n", lines // 2)[-(lines // 2) :]) if lines > 1 else ""
    return "".join(
        (_first(head, (room + 1) // 2), _GAP, marker, _GAP, _last(tail, room // 2)),
    )


def kept_marker(sample: MeasuredText, path: str) -> str:
    """The marker of an output that was kept whole. One line."""
    return f"[... cut: {_size(sample)} in all; read or grep {path} for the whole ...]"


def lossy_marker(sample: MeasuredText) -> str:
    """The marker of an output whose middle is nowhere any more. One line."""
    return f"[... cut: {_size(sample)} in all; the rest could not be kept ...]"


def shorten(text: str, limits: OutputLimits) -> str:
    """A text of which nothing else is kept, within its limits."""
    sample = measure_text((text.encode(errors="backslashreplace"),), limits)
    return text if sample.fits(limits) else preview(sample, lossy_marker(sample), limits)


def _decoded(decoder: codecs.IncrementalDecoder, pieces: Iterable[bytes]) -> Iterable[str]:
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _size(sample: MeasuredText) -> str:
    return f"{sample.bytes:,} bytes in {sample.newlines + 1:,} lines"


def _first(text: str, size: int) -> str:
    """As many whole characters as fit, from the start."""
    return text.encode()[:size].decode(errors="ignore")


def _last(text: str, size: int) -> str:
    """As many whole characters as fit, at the end."""
    return text.encode()[-size:].decode(errors="ignore") if size else ""
