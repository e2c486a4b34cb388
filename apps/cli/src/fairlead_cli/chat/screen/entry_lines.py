"""Draws the entries of a transcript as lines of a width."""

from typing import Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from fairlead_cli.chat.screen.markdown_lines import MarkdownLines, draw, make_console
from fairlead_cli.chat.view.call_card import WRITTEN_MIN, CardBody, card_body, card_title, duration
from fairlead_cli.chat.view.entries import (
    AnyEntry,
    CallEntry,
    NoticeEntry,
    PromptEntry,
    ReasoningEntry,
    SummaryEntry,
    TextEntry,
)

GUTTER: Final = 2
_BODY: Final = 4
_GLYPHS: Final = {
    "writing": ("○", "dim"),
    "running": ("●", "cyan"),
    "waiting": ("◆", "bold yellow"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
}
_NOTICES: Final = {"info": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "red")}
_REASONING_LINES: Final = 3


class DrawOptions(NamedTuple):
    """How an entry is drawn. Equal options give equal lines."""

    width: int
    is_unfolded: bool = False
    is_selected: bool = False
    now_ms: int = 0


class EntryLines:
    """Draws entries."""

    def __init__(self) -> None:
        self._console = make_console()
        self._markdown = MarkdownLines(self._console)
        self._final: dict[str, tuple[int, list[Strip]]] = {}
        """The strips of growing texts that will never change, by the key of the text."""

    def strips(self, entry: AnyEntry, options: DrawOptions) -> list[Strip]:
        """The lines of an entry. None is wider than the width."""
        options = options._replace(width=max(8, options.width))
        if isinstance(entry, TextEntry) and entry.is_open:
            return self._growing(entry, options.width)
        self._final.pop(entry.key, None)
        return [_strip(line, options.width) for line in self._lines(entry, options)]

    def _growing(self, entry: TextEntry, width: int) -> list[Strip]:
        """The lines of a text that still grows. A strip that stays is not drawn again."""
        drawn = self._markdown.lines(entry.key, entry.text, width - GUTTER, is_open=True)
        final = self._markdown.final_count(entry.key)
        known_width, known = self._final.get(entry.key, (width, []))
        if known_width != width or len(known) > final:
            known = []
        new = [_strip(line, width) for line in _indent(drawn[len(known) :], "")]
        self._final[entry.key] = (width, known + new[: final - len(known)])
        return known + new

    def _lines(self, entry: AnyEntry, options: DrawOptions) -> list[list[Segment]]:
        inner = options.width - GUTTER
        match entry:
            case PromptEntry():
                return self._prompt(entry, inner)
            case TextEntry():
                lines = self._markdown.lines(entry.key, entry.text, inner, is_open=entry.is_open)
                return _indent(lines, "")
            case ReasoningEntry():
                return self._reasoning(entry, options)
            case CallEntry():
                return self._call(entry, options)
            case SummaryEntry():
                return self._summary(entry, options)
            case NoticeEntry():
                glyph, style = _NOTICES[entry.level]
                return _indent(self._text(entry.text, inner, style), glyph, style)

    def _text(self, text: str, width: int, style: str = "") -> list[list[Segment]]:
        return draw(self._console, Text(text, style=style), width)

    def _prompt(self, entry: PromptEntry, width: int) -> list[list[Segment]]:
        lines = self._text(entry.text, width, "bold") if entry.text else []
        for file in entry.files:
            lines += self._text(f"+ {file}", width, "dim")
        return _indent(lines, ">", "bold cyan")

    def _reasoning(self, entry: ReasoningEntry, options: DrawOptions) -> list[list[Segment]]:
        lines = self._text(entry.text.strip(), options.width - GUTTER, "dim italic")
        if not options.is_unfolded and len(lines) > _REASONING_LINES:
            shown = lines[-_REASONING_LINES:] if entry.is_open else lines[:1]
            more = f"… {len(lines) - len(shown)} more lines"
            lines = [*shown, *self._text(more, options.width - GUTTER, "dim")]
        return _indent(lines, "*", "dim")

    def _summary(self, entry: SummaryEntry, options: DrawOptions) -> list[list[Segment]]:
        title = "Compacting the history…" if entry.is_open else "The history is now this summary:"
        lines = [[Segment(title, Style(dim=True))]]
        width = options.width - GUTTER
        text = self._markdown.lines(entry.key, entry.text, width, is_open=entry.is_open)
        limit = len(text) if options.is_unfolded else _REASONING_LINES
        lines += text[:limit]
        if text[limit:]:
            lines.append([Segment(f"… {len(text) - limit} more lines", Style(dim=True))])
        return _indent(lines, "≡", "cyan")

    def _call(self, call: CallEntry, options: DrawOptions) -> list[list[Segment]]:
        has_failed = call.state == "done" and call.structured.get("exit")
        glyph, style = _GLYPHS["failed" if has_failed else call.state]
        body = card_body(call, is_unfolded=options.is_unfolded)
        name = "!" if call.is_own else call.tool
        head = Text.assemble((f"{name} ", "bold"))
        head.append(card_title(call), style="" if call.state != "writing" else "dim")
        for note in _notes(call, body, options.now_ms):
            head.append(f"  {note}", style="dim")
        if options.is_selected:
            head.stylize("reverse")
        lines = draw(self._console, head, options.width - GUTTER)
        if not options.is_unfolded and len(lines) > 2:  # noqa: PLR2004 - a title of two lines
            lines = [*lines[:1], [*lines[1], Segment("…")]]
        return _indent(lines, glyph, style) + self._body(body, options)

    def _body(self, body: CardBody, options: DrawOptions) -> list[list[Segment]]:
        width = options.width - _BODY
        drawn: list[list[Segment]] = []
        for line in body.lines:
            style = _diff_style(line) if body.is_diff else "dim"
            text = Text(line, style=style, no_wrap=not options.is_unfolded, overflow="ellipsis")
            drawn += draw(self._console, text, width) or [[]]
        bar = Segment("  │ ", Style(dim=True))
        return [[bar, *line] for line in drawn]


def _strip(line: list[Segment], width: int) -> Strip:
    return Strip(Segment.adjust_line_length(line, width), width)


def gap_before(entry: AnyEntry, previous: AnyEntry | None) -> int:
    """How many empty lines stand before an entry. Cards and notices stand together."""
    if previous is None:
        return 0
    close = CallEntry | NoticeEntry
    return 0 if isinstance(entry, close) and isinstance(previous, close) else 1


def _notes(call: CallEntry, body: CardBody, now_ms: int) -> list[str]:
    notes = [duration(call, now_ms)]
    if body.hidden:
        notes.append(f"+{body.hidden} lines" if body.hidden > 1 else "+1 line")
    if call.state == "writing" and call.written >= WRITTEN_MIN:
        notes.append(f"{call.written:,} characters so far")
    if call.state == "waiting":
        notes.append("waits for you")
    if call.structured.get("exit"):
        notes.append(f"exit {call.structured['exit']}")
    return [note for note in notes if note]


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---", "@@", "diff ")):
        return "dim"
    return {"+": "green", "-": "red"}.get(line[:1], "dim")


def _indent(lines: list[list[Segment]], glyph: str, style: str = "") -> list[list[Segment]]:
    """The lines with a gutter at the left, whose first line has a glyph."""
    first = Segment(f"{glyph:<{GUTTER}}", Style.parse(style) if style else None)
    rest = Segment(" " * GUTTER)
    return [[rest if index else first, *line] for index, line in enumerate(lines)]
