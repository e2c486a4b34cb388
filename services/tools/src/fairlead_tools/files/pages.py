"""Text of a file, whole or one page of it. Only what a page needs is read."""

import codecs
from dataclasses import dataclass
from typing import BinaryIO, Final

PAGE_BYTES_MAX: Final = 51_200
PAGE_LINES_MAX: Final = 2_000
LINE_LENGTH_MAX: Final = 2_000
CUT: Final = f"... (line cut at {LINE_LENGTH_MAX} characters)"

_SAMPLE: Final = 4_096
_CONTROL_PERCENT_MAX: Final = 30
_LINE_BYTES_MAX: Final = LINE_LENGTH_MAX * 4 + 2
_CHUNK: Final = 1 << 20
_CONTROLS: Final = bytes({*range(9), *range(14, 32)})


class Binary(Exception):
    """The bytes are no text."""


class OutOfRange(Exception):
    """The file ends before the page begins."""


@dataclass(frozen=True, slots=True)
class LinePage:
    """Some lines of a file, the first being number `offset`."""

    content: str
    offset: int
    next: int | None

    @property
    def truncated(self) -> bool:
        return self.next is not None


def read_whole(file: BinaryIO) -> str | None:
    """The text of a small file; None if it needs pages. Raises Binary, UnicodeDecodeError."""
    raw = file.read(PAGE_BYTES_MAX + 1)
    if len(raw) > PAGE_BYTES_MAX:
        file.seek(0)
        return None
    _judge(raw, raw[:_SAMPLE])
    return raw.decode("utf-8-sig")


def read_page(file: BinaryIO, offset: int = 1, limit: int = PAGE_LINES_MAX) -> LinePage:
    """The lines from `offset` on. Raises Binary, OutOfRange, UnicodeDecodeError."""
    _skip(file, offset - 1)
    lines: list[str] = []
    size = 0
    sample = b""
    while len(lines) < limit:
        line, complete = _line(file)
        if not line:
            return _last(lines, offset)
        size += len(line.removesuffix(b"\n")) + bool(lines)
        if lines and size > PAGE_BYTES_MAX:
            return LinePage("\n".join(lines), offset, offset + len(lines))
        sample = (sample + line)[:_SAMPLE]
        _judge(line, sample)
        lines.append(_text(line, complete=complete, first=offset == 1 and not lines))
    if not file.read(1):
        return _last(lines, offset)
    return LinePage("\n".join(lines), offset, offset + len(lines))


def _last(lines: list[str], offset: int) -> LinePage:
    if not lines and offset > 1:
        raise OutOfRange
    return LinePage("\n".join(lines), offset, None)


def _skip(file: BinaryIO, lines: int) -> None:
    while lines:
        part = file.readline(_CHUNK)
        if not part:
            raise OutOfRange
        lines -= part.endswith(b"\n")


def _line(file: BinaryIO) -> tuple[bytes, bool]:
    """The beginning of the next line, and whether that is all of it. The rest is passed over."""
    line = file.readline(_LINE_BYTES_MAX)
    if len(line) < _LINE_BYTES_MAX or line.endswith(b"\n"):
        return line, True
    complete = True
    while rest := file.readline(_CHUNK):
        complete = False
        if rest.endswith(b"\n"):
            break
    return line, complete


def _text(line: bytes, *, complete: bool, first: bool) -> str:
    # A line that goes on may be cut within a character: that one is left out.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if first else "utf-8")()
    text = decoder.decode(line.removesuffix(b"\n"), final=complete)
    if complete:
        text = text.removesuffix("\r")
    if complete and len(text) <= LINE_LENGTH_MAX:
        return text
    return text[:LINE_LENGTH_MAX] + CUT


def _judge(read: bytes, sample: bytes) -> None:
    """Refuse what has a zero byte, or too many control characters where it begins."""
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if b"\0" in read or controls * 100 > len(sample) * _CONTROL_PERCENT_MAX:
        raise Binary
