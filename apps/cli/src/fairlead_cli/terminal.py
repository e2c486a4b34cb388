"""What people see: one console for answers, one for remarks; plain when nobody watches."""

import logging
import sys
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typing_extensions import override

WIDE: Final = 100


def answers() -> Console:
    """Standard output."""
    return _console(stderr=False)


def remarks() -> Console:
    """Standard error: progress and notices, never part of an answer."""
    return _console(stderr=True)


def table(*columns: str) -> Table:
    """A light table: a heading, no frame. Where it is narrow, the last column wraps."""
    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    *fixed, last = columns
    for column in fixed:
        made.add_column(column, no_wrap=True)
    made.add_column(last)
    return made


def shorten(text: str, length: int = 72) -> str:
    """One line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


class Remarks(logging.Handler):
    """Log lines of this process as remarks."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(f"[yellow]![/] {escape(record.getMessage())}")


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDE
    return Console(stderr=stderr, highlight=False, width=width, emoji=False)
