"""Draws markdown as lines, and a text that still grows without drawing all of it again."""

import io
import re
from typing import Final

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


class MarkdownLines:
    """Draws texts. Of a growing text it keeps the lines that are final."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._kept: dict[str, tuple[str, int, list[list[Segment]]]] = {}

    def lines(self, key: str, text: str, width: int, *, is_open: bool) -> list[list[Segment]]:
        """The lines of a text under a key. A text that is complete is drawn as a whole."""
        if not is_open:
            self._kept.pop(key, None)
            return self._draw(text, width)
        prefix, kept_width, kept = self._kept.get(key, ("", width, []))
        if kept_width != width or not text.startswith(prefix):
            prefix, kept = "", []
        end = stable_end(text[len(prefix) :])
        if end:
            if kept:
                kept = [*kept, []]
            kept = [*kept, *self._draw(text[len(prefix) : len(prefix) + end], width)]
            prefix = text[: len(prefix) + end]
        self._kept[key] = (prefix, width, kept)
        tail = self._draw(text[len(prefix) :], width)
        return [*kept, [], *tail] if kept and tail else [*kept, *tail]

    def final_count(self, key: str) -> int:
        """How many lines of a growing text will never change."""
        return len(self._kept[key][2]) if key in self._kept else 0

    def _draw(self, text: str, width: int) -> list[list[Segment]]:
        if not text.strip():
            return []
        if len(text) > MARKDOWN_LENGTH_MAX:
            return draw(self._console, Text(text), width)
        # The parser and the colours of code take as long to load as the rest of the screen.
        from fairlead_cli.chat.screen.chat_markdown import chat_markdown  # noqa: PLC0415

        drawn = draw(self._console, chat_markdown(text), width)
        return _without_blank_runs(drawn)


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
