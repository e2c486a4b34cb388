"""HTML for people becomes text for models: markdown, or plain text. Scripts and styles are left out."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final, Literal, TypeAlias

from typing_extensions import override

Format: TypeAlias = Literal["markdown", "text", "html"]

HIDDEN: Final = frozenset(
    {"script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "head", "meta"}
)
VOID: Final = frozenset({"meta", "embed", "br", "hr", "img", "input", "link", "source", "wbr"})
BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("header", "html", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "ul"),
        *("tbody", "thead", "tfoot", "caption"),
    }
)
MARKS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
QUOTES_MAX: Final = 20
_SPACES: Final = re.compile(r"[ \t\r\n\f]+")
_BLANKS: Final = re.compile(r"\n{3,}")


def readable(html: str, wanted: Format) -> str:
    """A page as markdown or as text; as it is, if HTML is wanted."""
    if wanted == "html":
        return html
    reader = Reader(markdown=wanted == "markdown")
    reader.feed(html)
    reader.close()
    return reader.text()


@dataclass(slots=True)
class Link:
    """A link that is being read."""

    address: str
    begins: int


@dataclass(slots=True)
class Listing:
    """A list that is being read, and the number of its last item."""

    ordered: bool
    count: int = 0


@dataclass(slots=True)
class State:
    """Where in the page the reader is."""

    hidden: int = 0
    pre: int = 0
    quotes: int = 0
    lists: list[Listing] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    cells: int = 0


class Reader(HTMLParser):
    """Reads a page from its beginning to its end, whatever is unclosed or crossed in it."""

    def __init__(self, *, markdown: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._markdown = markdown
        self._out: list[str] = []
        self._state = State()
        self._hiding: list[str] = []

    def text(self) -> str:
        """What was read."""
        lines = (line.rstrip() for line in "".join(self._out).split("\n"))
        return _BLANKS.sub("\n\n", "\n".join(lines)).strip()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            if tag not in VOID:
                self._hiding.append(tag)
            return
        if self._hiding:
            # A page that never closes its head still has a body.
            if tag == "body" and self._hiding == ["head"]:
                self._hiding.clear()
            return
        said = {name: value or "" for name, value in attrs}
        if tag in BLOCKS:
            self._block()
        self._open(tag, said)

    @override
    def handle_endtag(self, tag: str) -> None:
        if self._hiding:
            if tag in self._hiding:
                del self._hiding[self._hiding.index(tag) :]
            return
        self._close(tag)
        if tag in BLOCKS:
            self._block()

    @override
    def handle_data(self, data: str) -> None:
        if self._hiding:
            return
        if self._state.pre:
            self._out.append(data)
            return
        told = _SPACES.sub(" ", data)
        if told == " " and self._fresh():
            return
        self._out.append(told.lstrip(" ") if self._fresh() else told)

    def _open(self, tag: str, said: dict[str, str]) -> None:
        state = self._state
        match tag:
            case "br":
                self._out.append("\n" + self._margin())
            case "hr":
                self._block()
                self._mark("---")
                self._block()
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._mark("#" * int(tag[1]) + " ")
            case "ul" | "ol" | "li":
                self._list(tag)
            case "pre":
                state.pre += 1
                self._mark("```\n")
            case "blockquote":
                state.quotes = min(state.quotes + 1, QUOTES_MAX)
                self._mark("> ")
            case "a":
                state.links.append(Link(said.get("href", ""), len(self._out)))
            case "img":
                self._image(said)
            case "tr" | "td" | "th":
                self._cell(tag)
            case "code" if not state.pre:
                self._mark("`")
            case _:
                self._mark(MARKS.get(tag, ""))

    def _close(self, tag: str) -> None:
        state = self._state
        match tag:
            case "ul" | "ol":
                if state.lists:
                    state.lists.pop()
                self._line()
            case "pre":
                if state.pre:
                    state.pre -= 1
                    self._line()
                    self._mark("```")
            case "blockquote":
                state.quotes = max(state.quotes - 1, 0)
            case "a":
                self._linked()
            case "code" if not state.pre:
                self._mark("`")
            case _:
                self._mark(MARKS.get(tag, ""))

    def _cell(self, tag: str) -> None:
        if tag == "tr":
            self._line()
            self._state.cells = 0
            return
        self._out.append(" | " if self._state.cells else "")
        self._state.cells += 1

    def _list(self, tag: str) -> None:
        if tag != "li":
            self._state.lists.append(Listing(tag == "ol"))
            return
        self._line()
        lists = self._state.lists
        if not lists:
            self._out.append("- ")
            return
        lists[-1].count += 1
        bullet = f"{lists[-1].count}. " if lists[-1].ordered else "- "
        self._out.append("  " * (min(len(lists), QUOTES_MAX) - 1) + bullet)

    def _linked(self) -> None:
        if not self._state.links:
            return
        link = self._state.links.pop()
        said = "".join(self._out[link.begins :]).strip()
        if self._markdown and said and link.address and not link.address.startswith("javascript:"):
            before = (
                "" if self._fresh_at(link.begins) else " " * self._out[link.begins].startswith(" ")
            )
            self._out[link.begins :] = [f"{before}[{said}]({link.address})"]

    def _image(self, said: dict[str, str]) -> None:
        alt = said.get("alt", "").strip()
        if self._markdown and said.get("src") and not said["src"].startswith("data:"):
            self._out.append(f"![{alt}]({said['src']})")
        elif alt:
            self._out.append(alt)

    def _mark(self, mark: str) -> None:
        if self._markdown and mark:
            self._out.append(mark)

    def _block(self) -> None:
        if self._state.pre or not self._out:
            return
        self._out.append("\n\n" + self._margin())

    def _line(self) -> None:
        if self._out and not self._out[-1].endswith("\n"):
            self._out.append("\n" + self._margin())

    def _margin(self) -> str:
        return "> " * self._state.quotes if self._markdown else ""

    def _fresh(self) -> bool:
        return self._fresh_at(len(self._out))

    def _fresh_at(self, place: int) -> bool:
        """Whether a line begins there."""
        return place == 0 or self._out[place - 1].endswith(("\n", "> "))
