"""The text of a file, whole or one page of it. Only the part that a page needs is read."""

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
# A page is found by reading from the start. Further away than this it is not looked for.
SCAN_BYTES_MAX: Final = 256 << 20
_CONTROLS: Final = bytes({*range(9), *range(14, 32)})


class Binary(Exception):
    """The bytes are not text."""


class OutOfRange(Exception):
    """The file ends before the page begins."""


class TooFar(Exception):
    """The page lies too far into the file, or a line is too long to find its end."""

    def __init__(self) -> None:
        mebibytes = SCAN_BYTES_MAX >> 20
        super().__init__(f"The page is more than {mebibytes} MiB into the file; search with grep")


@dataclass(frozen=True, slots=True)
class LinePage:
    """Some lines of a file. The first has the number `offset`."""

    content: str
    offset: int
    next: int | None

    @property
    def has_more(self) -> bool:
        return self.next is not None


def read_whole(file: BinaryIO) -> str | None:
    """The text of a small file; None if it needs pages. Raises Binary, UnicodeDecodeError."""
    raw = file.read(PAGE_BYTES_MAX + 1)
    if len(raw) > PAGE_BYTES_MAX:
        file.seek(0)
        return None
    _check_text(raw, raw[:_SAMPLE])
    return raw.decode("utf-8-sig")


def read_page(file: BinaryIO, offset: int = 1, limit: int = PAGE_LINES_MAX) -> LinePage:
    """The lines from `offset` on. Raises Binary, OutOfRange, UnicodeDecodeError."""
    if offset > 1:
        start = file.read(_SAMPLE)
        _check_text(start, start)
        file.seek(0)
        _skip(file, offset - 1)
    lines: list[str] = []
    size = 0
    sample = b""
    while len(lines) < limit:
        line = file.readline(_LINE_BYTES_MAX)
        if not line:
            return _last(lines, offset)
        size += len(line.removesuffix(b"\n")) + bool(lines)
        if lines and size > PAGE_BYTES_MAX:
            return LinePage("\n".join(lines), offset, offset + len(lines))
        sample = (sample + line)[:_SAMPLE]
        # Judged before the rest of a long line is read, which may be all of a huge file.
        _check_text(line, sample)
        complete = _finish_line(file, line)
        starts_file = offset == 1 and not lines
        lines.append(_decode_and_cut(line, complete=complete, starts_file=starts_file))
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
        _check_distance(file)


def _finish_line(file: BinaryIO, line: bytes) -> bool:
    """Skip the rest of a long line. Returns whether there was none."""
    if len(line) < _LINE_BYTES_MAX or line.endswith(b"\n"):
        return True
    complete = True
    while rest := file.readline(_CHUNK):
        complete = False
        if rest.endswith(b"\n"):
            break
        if b"\0" in rest:
            raise Binary
        _check_distance(file)
    return complete


def _check_distance(file: BinaryIO) -> None:
    if file.tell() > SCAN_BYTES_MAX:
        raise TooFar


def _decode_and_cut(line: bytes, *, complete: bool, starts_file: bool) -> str:
    # A cut line may end within a character, which is left out.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if starts_file else "utf-8")()
    text = decoder.decode(line.removesuffix(b"\n"), final=complete)
    if complete:
        text = text.removesuffix("\r")
    if complete and len(text) <= LINE_LENGTH_MAX:
        return text
    return text[:LINE_LENGTH_MAX] + CUT


def _check_text(raw: bytes, sample: bytes) -> None:
    """Raise Binary for a zero byte, or for too many control characters at the start."""
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if b"\0" in raw or controls * 100 > len(sample) * _CONTROL_PERCENT_MAX:
        raise Binary
