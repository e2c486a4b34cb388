"""Draws markdown as lines, and a text that still grows without drawing all of it again."""

import io
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text
from rich.theme import Theme

_THEME: Final = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold italic",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)
CODE_LINES: Final = 40
"""Of an open code block so many lines are drawn again at most, or few more."""
# Markdown of this size is no answer of a model: as plain text it costs little.
MARKDOWN_LENGTH_MAX: Final = 200_000


def make_console() -> Console:
    """A console that only draws: nothing is written to it."""
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        theme=_THEME,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


def draw(console: Console, renderable: RenderableType, width: int) -> list[list[Segment]]:
    """The lines of anything that rich can draw."""
    options = console.options.update(width=max(1, width), height=None)
    return console.render_lines(renderable, options, pad=False)


def stable_end(text: str) -> int:
    """Where the part of a growing text ends that later text cannot change any more.

    That is the last empty line outside of a code block that no indented line follows.
    """
    end, is_fenced, position = 0, False, 0
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            is_fenced = not is_fenced
        position += len(line)
        if not line.strip() and not is_fenced and not text[position : position + 1].isspace():
            end = position
    # The last line may still become anything.
    return end if text[end:].strip() else 0


class CodeBlock(NamedTuple):
    """Where a code block begins, the line that opens it, and where it ends; None: it is still open."""

    start: int
    fence: str
    end: int | None


def code_blocks(text: str) -> list[CodeBlock]:
    """The code blocks of a text."""
    blocks: list[CodeBlock] = []
    for found in _FENCE.finditer(text):
        line_end = text.find("\n", found.end())
        line = text[found.start() : len(text) if line_end < 0 else line_end]
        last = blocks[-1] if blocks and blocks[-1].end is None else None
        if last is None:
            blocks.append(CodeBlock(found.start(), line, None))
        elif line.strip() == found[1] and found[1].startswith(_FENCE.match(last.fence)[1]):  # type: ignore[index]
            blocks[-1] = last._replace(end=len(text) if line_end < 0 else line_end + 1)
    return blocks


def open_code(text: str) -> CodeBlock | None:
    """The code block that the text ends in. One inside of a list belongs to the list."""
    last = next(reversed(code_blocks(text)), None)
    is_open = last is not None and last.end is None and not last.fence.startswith(" ")
    return last if is_open else None


def code_cut(code: str) -> int:
    """Where an open code block may be cut: between two lines with text, after many of them. 0: nowhere yet."""
    lines = code.split("\n")[:-1]
    for count in range(len(lines) - 1, CODE_LINES - 1, -1):
        if lines[count - 1].strip() and lines[count].strip():
            return sum(len(line) + 1 for line in lines[:count])
    return 0


@dataclass(slots=True)
class GrowingLines:
    """The lines of a text that will never change, and how much of the text they show."""

    width: int
    prefix: str = ""
    lines: list[list[Segment]] = field(default_factory=list)
    fence: str = ""
    """The line that opens the code block in which the prefix ends."""


class MarkdownLines:
    """Draws texts. Of a growing text it keeps the lines that are final."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._kept: dict[str, GrowingLines] = {}

    def lines(self, key: str, text: str, width: int, *, is_open: bool) -> list[list[Segment]]:
        """The lines of a text under a key. A text that is complete is drawn as a whole."""
        if not is_open:
            self._kept.pop(key, None)
            return self._draw(text, width)
        grown = self._kept.get(key)
        if grown is None or grown.width != width or not text.startswith(grown.prefix):
            grown = self._kept[key] = GrowingLines(width)
        while self._finish(grown, text):
            pass
        tail = self._draw(_as_code(grown, text[len(grown.prefix) :]), width)
        is_apart = grown.lines and tail and not grown.fence
        return [*grown.lines, *([[]] if is_apart else []), *tail]

    def _finish(self, grown: GrowingLines, text: str) -> bool:
        """Draw the next part of a text that is final. False: there is none yet."""
        rest = text[len(grown.prefix) :]
        if grown.fence:
            return self._finish_code(grown, rest)
        end = stable_end(rest)
        if not end and (opened := open_code(rest)) is not None:
            body = opened.start + len(opened.fence) + 1
            if not code_cut(rest[body:]):
                return False
            self._keep(grown, rest[: opened.start], is_apart=True)
            grown.lines += [[]] if grown.lines else []
            grown.prefix, grown.fence = (
                text[: len(grown.prefix) + body - opened.start],
                opened.fence,
            )
            return True
        self._keep(grown, rest[:end], is_apart=True)
        return bool(end)

    def _finish_code(self, grown: GrowingLines, rest: str) -> bool:
        head = len(grown.fence) + 1
        closed = code_blocks(f"{grown.fence}\n{rest}")[0].end
        end = code_cut(rest) if closed is None else closed - head
        self._keep(grown, rest[:end], is_apart=False)
        grown.fence = grown.fence if closed is None else ""
        return bool(end)

    def _keep(self, grown: GrowingLines, piece: str, *, is_apart: bool) -> None:
        drawn = self._draw(_as_code(grown, piece), grown.width)
        if grown.lines and drawn and is_apart:
            grown.lines.append([])
        grown.lines += drawn
        grown.prefix += piece

    def final_count(self, key: str) -> int:
        """How many lines of a growing text will never change."""
        return len(self._kept[key].lines) if key in self._kept else 0

    def _draw(self, text: str, width: int) -> list[list[Segment]]:
        if not text.strip():
            return []
        if len(text) > MARKDOWN_LENGTH_MAX:
            return draw(self._console, Text(text), width)
        # The parser and the colours of code take as long to load as the rest of the screen.
        from fairlead_cli.chat.screen.chat_markdown import chat_markdown  # noqa: PLC0415

        drawn = draw(self._console, chat_markdown(text), width)
        return _without_blank_runs(drawn)


def _as_code(grown: GrowingLines, piece: str) -> str:
    """A piece of code as a code block of its own."""
    return f"{grown.fence}\n{piece}" if grown.fence and piece else piece


def _without_blank_runs(lines: list[list[Segment]]) -> list[list[Segment]]:
    """The lines with at most one empty line in a row, and none at the ends."""
    kept: list[list[Segment]] = []
    for line in lines:
        if _has_text(line):
            kept.append(line)
        elif kept and kept[-1]:
            kept.append([])
    return kept[:-1] if kept and not kept[-1] else kept


def _has_text(line: list[Segment]) -> bool:
    return any(segment.text.strip() for segment in line)
