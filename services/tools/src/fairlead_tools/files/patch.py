"""Patches: their grammar and how they change a text. Nothing here touches a file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

# Every chunk may look through the whole file. A thread that looks cannot be stopped.
WORK_MAX: Final = 20_000_000
BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
ADD: Final = "*** Add File:"
DELETE: Final = "*** Delete File:"
UPDATE: Final = "*** Update File:"
MOVE: Final = "*** Move to:"
END_OF_FILE: Final = "*** End of File"

_HEREDOC: Final = re.compile(
    r"(?:cat\s+)?<<-?\s*(['\"]?)(\w+)\1[ \t]*\r?\n(.*)\n[ \t]*\2", re.DOTALL
)
_PUNCTUATION: Final = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f", " ")
    | {"\u3000": " ", "\u2026": "..."}
)

Mark: TypeAlias = Literal[" ", "-", "+"]


class MalformedPatch(Exception):
    """The text is not a patch. The message says at which line."""


class LinesNotFound(Exception):
    """The patch names lines that the file does not have."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines to find, each kept, removed or added."""

    lines: tuple[tuple[Mark, str], ...]
    context: str | None = None
    """A line that comes before the chunk."""
    last: bool = False
    """Whether the chunk is at the end of the file."""

    @property
    def old(self) -> tuple[str, ...]:
        return tuple(text for mark, text in self.lines if mark != "+")

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(text for mark, text in self.lines if mark != "-")


@dataclass(frozen=True, slots=True)
class Add:
    """Create a file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file."""

    path: str


@dataclass(frozen=True, slots=True)
class Update:
    """Change a file and optionally move it."""

    path: str
    chunks: tuple[Chunk, ...]
    to: str | None = None


Hunk: TypeAlias = Add | Delete | Update


def parse_patch(text: str) -> tuple[Hunk, ...]:
    """The file changes of a patch, in their order. Raises MalformedPatch."""
    lines = _without_heredoc(text).strip().split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    if lines[0].strip() != BEGIN:
        raise MalformedPatch(f"the first line must be '{BEGIN}'")
    if lines[-1].strip() != END:
        raise MalformedPatch(f"the last line must be '{END}'")
    hunks: list[Hunk] = []
    at, end = 1, len(lines) - 1
    while at < end:
        if not lines[at].strip():
            at += 1
            continue
        hunk, at = _hunk(lines, at, end)
        hunks.append(hunk)
    if not hunks:
        raise MalformedPatch("it changes no file")
    return tuple(hunks)


def apply_chunks(text: str, chunks: tuple[Chunk, ...]) -> str:
    """The text after all chunks. Raises LinesNotFound.

    A line that stays keeps its form in the text. An added line gets the usual line ending of the text.
    """
    *lines, rest = text.split("\n")
    crlf = sum(line.endswith("\r") for line in lines)
    ending = "\r" if crlf * 2 > len(lines) else ""
    if rest:
        lines.append(rest + ending)
    bare = [line.removesuffix("\r") for line in lines]
    if len(bare) * len(chunks) > WORK_MAX:
        raise LinesNotFound("the patch has too many chunks for so long a file: split the patch")
    result: list[str] = []
    appended: list[str] = []
    position = 0
    for chunk in chunks:
        start = _locate_chunk(bare, chunk, position)
        if start is None:
            appended += [line + ending for _, line in chunk.lines]
            continue
        result += lines[position:start]
        position = start
        for mark, line in chunk.lines:
            if mark == "+":
                result.append(line + ending)
                continue
            if mark == " ":
                result.append(lines[position])
            position += 1
    result += lines[position:] + appended
    whole = "".join(f"{line}\n" for line in result)
    return whole.removesuffix("\n").removesuffix("\r") if rest else whole


def _without_heredoc(text: str) -> str:
    """The patch without the shell here-document that a model may have put around it."""
    match = _HEREDOC.fullmatch(text.strip())
    return match.group(3) if match else text


def _hunk(lines: list[str], at: int, end: int) -> tuple[Hunk, int]:
    line = lines[at]
    for header in (ADD, DELETE, UPDATE):
        if line.startswith(header):
            path = line.removeprefix(header).strip()
            break
    else:
        raise MalformedPatch(f"line {at + 1} begins no file change: {line[:80]!r}")
    if not path:
        raise MalformedPatch(f"line {at + 1} names no file")
    if header == DELETE:
        return Delete(path), at + 1
    if header == UPDATE:
        return _update(path, lines, at + 1, end)
    body = at + 1
    while body < end and lines[body].startswith("+"):
        body += 1
    content = "".join(f"{line[1:]}\n" for line in lines[at + 1 : body])
    return Add(path, content), body


def _update(path: str, lines: list[str], at: int, end: int) -> tuple[Update, int]:
    to = None
    if at < end and lines[at].startswith(MOVE):
        to = lines[at].removeprefix(MOVE).strip()
        at += 1
        if not to:
            raise MalformedPatch(f"line {at} names no file to move to")
    stop = at
    while stop < end and not lines[stop].startswith((ADD, DELETE, UPDATE)):
        stop += 1
    chunks = tuple(_chunks(lines[at:stop], at))
    if not chunks and to is None:
        raise MalformedPatch(f"the update of {path} changes nothing")
    return Update(path, chunks, to), stop


def _chunks(lines: list[str], at: int) -> Iterator[Chunk]:
    """The chunks of one update. The first one needs no header."""
    while lines and not lines[-1].strip():
        lines.pop()
    context: str | None = None
    body: list[tuple[Mark, str]] = []
    has_header = False
    for number, line in enumerate(lines, start=at + 1):
        if line.startswith("@@"):
            if body:
                yield Chunk(tuple(body), context)
            elif has_header:
                raise MalformedPatch(f"the chunk before line {number} is empty")
            has_header, body = True, []
            context = line.removeprefix("@@").removeprefix(" ").rstrip() or None
        elif line.rstrip() == END_OF_FILE:
            if not body:
                raise MalformedPatch(f"line {number} ends a chunk that has no lines")
            yield Chunk(tuple(body), context, last=True)
            has_header, body, context = False, [], None
        else:
            body.append(_parse_line(line, number))
    if body:
        yield Chunk(tuple(body), context)
    elif has_header:
        raise MalformedPatch("the last chunk is empty")


def _parse_line(line: str, number: int) -> tuple[Mark, str]:
    match line[:1]:
        case "" | " ":
            return " ", line[1:]
        case "-":
            return "-", line[1:]
        case "+":
            return "+", line[1:]
        case _:
            raise MalformedPatch(f"line {number} begins with none of ' ', '-', '+': {line[:80]!r}")


def _locate_chunk(lines: list[str], chunk: Chunk, at: int) -> int | None:
    """The line where a chunk starts, not before `at`; None for a chunk that only adds at the end."""
    if chunk.context is not None:
        before = _find_lines(lines, (chunk.context,), at, last=False)
        if before is None:
            raise LinesNotFound(f"cannot find the line {chunk.context!r}")
        at = before + 1
    if not chunk.old:
        return None
    start = _find_lines(lines, chunk.old, at, last=chunk.last)
    if start is None:
        missing = "\n".join(chunk.old)
        raise LinesNotFound(f"cannot find these lines:\n{missing[:1000]}")
    return start


def _find_lines(lines: list[str], needle: tuple[str, ...], at: int, *, last: bool) -> int | None:
    """The first place where the lines match, with the strictest comparison first."""
    ends = len(lines) - len(needle)
    if last and ends >= at:
        end = _first_match(lines, needle, range(ends, ends + 1))
        if end is not None:
            return end
    return _first_match(lines, needle, range(at, ends + 1))


def _first_match(lines: list[str], needle: tuple[str, ...], starts: range) -> int | None:
    for form in (str, str.rstrip, str.strip, _plain):
        want = [form(line) for line in needle]
        have = [form(line) for line in lines[starts.start : starts.stop - 1 + len(want)]]
        at = _find_sequence(have, want) if starts else None
        if at is not None:
            return starts.start + at
    return None


def _find_sequence(have: list[str], want: list[str]) -> int | None:
    """Where the wanted lines stand, in time proportional to the lines (Knuth, Morris, Pratt)."""
    shorter = [0]
    for line in want[1:]:
        shorter.append(_extend(want, shorter, shorter[-1], line))
    matched = 0
    for at, line in enumerate(have):
        matched = _extend(want, shorter, matched, line)
        if matched == len(want):
            return at + 1 - matched
    return None


def _extend(want: list[str], shorter: list[int], matched: int, line: str) -> int:
    """How many wanted lines are matched after one more line."""
    while matched and line != want[matched]:
        matched = shorter[matched - 1]
    return matched + (line == want[matched])


def _plain(line: str) -> str:
    return line.strip().translate(_PUNCTUATION)
