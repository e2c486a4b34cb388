"""Output bounds: of a long text the model sees both ends, and the path of the whole text.

A text may be larger than memory, so it is measured piece by piece. The measurement keeps its size
and as much of both ends as a preview can show.
"""

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 2_000
BYTES_MAX: Final = 51_200

# Between head, marker and tail stand two blank lines, which are four newlines.
_GAP: Final = "\n\n"
_GAPS: Final = 4


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How much text of one settlement the model sees. A text of exactly this size fits."""

    lines: int = LINES_MAX
    bytes: int = BYTES_MAX


@dataclass(frozen=True, slots=True)
class MeasuredText:
    """The size of a text as UTF-8, its newlines, and both ends."""

    bytes: int
    newlines: int
    head: str
    tail: str

    def fits(self, limits: OutputLimits) -> bool:
        """Whether the model sees the whole text."""
        return self.bytes <= limits.bytes and self.newlines < limits.lines


def measure_text(pieces: Iterable[bytes], limits: OutputLimits) -> MeasuredText:
    """Measure a text in pieces. Invalid UTF-8 counts as the replacement characters that are shown."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    size = newlines = 0
    head = tail = ""
    for text in _decode(decoder, pieces):
        size += len(text.encode())
        newlines += text.count("\n")
        # A character has at least one byte, so this many characters are always enough.
        if len(head) < limits.bytes:
            head += text[: limits.bytes - len(head)]
        tail = (tail + text)[-limits.bytes :]
    return MeasuredText(size, newlines, head, tail)


def preview(sample: MeasuredText, marker: str, limits: OutputLimits) -> str:
    """Head, marker and tail within both limits. The head gets the larger half (J-31, J-32)."""
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
    """The marker of an output whose whole text is kept. One line."""
    return f"[... cut: {_size(sample)} in all; read or grep {path} for the whole ...]"


def lossy_marker(sample: MeasuredText) -> str:
    """The marker of an output whose middle is lost. One line."""
    return f"[... cut: {_size(sample)} in all; the rest could not be kept ...]"


def shorten(text: str, limits: OutputLimits) -> str:
    """A text within its limits. The rest of the text is lost."""
    sample = measure_text((text.encode(errors="backslashreplace"),), limits)
    return text if sample.fits(limits) else preview(sample, lossy_marker(sample), limits)


def _decode(decoder: codecs.IncrementalDecoder, pieces: Iterable[bytes]) -> Iterable[str]:
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _size(sample: MeasuredText) -> str:
    return f"{sample.bytes:,} bytes in {sample.newlines + 1:,} lines"


def _first(text: str, size: int) -> str:
    """The whole characters that fit, from the start."""
    return text.encode()[:size].decode(errors="ignore")


def _last(text: str, size: int) -> str:
    """The whole characters that fit, from the end."""
    return text.encode()[-size:].decode(errors="ignore") if size else ""
