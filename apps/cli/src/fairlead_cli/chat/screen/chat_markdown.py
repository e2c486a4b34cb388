"""Markdown as the transcript shows it. Its libraries are loaded with the first text that is drawn."""

from copy import copy
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from typing_extensions import override

CODE_THEME: Final = "ansi_dark"
"""The terminal's own colours: they fit a light and a dark background."""


class LeftHeading(Heading):
    """A heading at the left, without a frame."""

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class IndentedCode(CodeBlock):
    """Code behind a margin, on the terminal's own background."""

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(),
            self.lexer_name,
            theme=CODE_THEME,
            word_wrap=True,
            background_color="default",
        )
        yield Padding(code, (0, 0, 0, 2), expand=False)


class ChatMarkdown(Markdown):
    """Markdown as the transcript shows it."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": IndentedCode,
        "code_block": IndentedCode,
    }


_PARSER: Final = MarkdownIt().enable(["strikethrough", "table"])
"""One for all texts: to make it takes longer than to parse a paragraph."""
_EMPTY: Final = ChatMarkdown("", code_theme=CODE_THEME, hyperlinks=False)


def chat_markdown(text: str) -> ChatMarkdown:
    """The text as the transcript shows it."""
    shown = copy(_EMPTY)
    shown.markup, shown.parsed = text, _PARSER.parse(text)
    return shown
