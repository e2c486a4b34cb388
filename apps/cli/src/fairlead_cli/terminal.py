"""Consoles for standard output and standard error; plain text when the output is no terminal."""

import logging
import sys
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Table
from typing_extensions import override

WIDE: Final = 100
NARROW: Final = 60
"""Below this width columns would show nothing but their beginnings."""
LAST_COLUMN: Final = 16
"""The last column wraps, and needs this width for it."""


class ResultTable(Table):
    """A table that becomes a list where it does not fit: ids stay whole, to be copied."""

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= NARROW and self._fits(console, options):
            yield from super().__rich_console__(console, options)
            return
        headings = [str(column.header).lower() for column in self.columns]
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            yield console.render_str(str(cells[0]))
            for heading, cell in zip(headings[1:], cells[1:], strict=True):
                yield console.render_str(f"  {heading} {cell}")

    def _fits(self, console: Console, options: ConsoleOptions) -> bool:
        """Whether nothing is cut off."""
        *others, last = [
            max(
                console.measure(console.render_str(str(cell))).maximum
                for cell in (column.header, *column.cells)
            )
            for column in self.columns
        ]
        pads = len(others) * self.padding[1]
        return sum(others) + pads + min(last, LAST_COLUMN) <= options.max_width


def stdout_console() -> Console:
    """Standard output: the result of a command."""
    return _console(stderr=False)


def stderr_console() -> Console:
    """Standard error: progress and notes that are no part of the result."""
    return _console(stderr=True)


def note(text: str) -> None:
    """Print a remark that is no part of the result."""
    stderr_console().print(f"· {text}", style="cyan", markup=False, soft_wrap=True)


def table(*columns: str) -> ResultTable:
    """A table with a heading and no frame. Only the last column wraps."""
    grid = ResultTable(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    *others, last = columns
    for column in others:
        grid.add_column(column, no_wrap=True)
    grid.add_column(last, overflow="fold")
    return grid


def shorten(text: str, length: int = 72) -> str:
    """One line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


class ConsoleLogHandler(logging.Handler):
    """Prints warnings and errors of this process's loggers to a console."""

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
