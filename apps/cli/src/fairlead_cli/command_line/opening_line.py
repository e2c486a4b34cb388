"""Whether a terminal can show a screen, and a line that a person sees until the screen covers it."""

import os
import sys
from types import TracebackType
from typing import Final, Self

from fairlead_cli.errors import UsageError

WITHOUT_CURSOR: Final = "dumb"
"""What a terminal calls itself that prints lines and nothing else."""


def check_terminal(command: str, instead: str) -> None:
    """Raises UsageError where no screen can be drawn. A screen is drawn on standard error."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(f"{command} needs a terminal: {instead}")
    if os.environ.get("TERM") == WITHOUT_CURSOR:
        raise UsageError(
            f"{command} needs a terminal with a cursor, and TERM is {WITHOUT_CURSOR}: {instead}"
        )


class OpeningLine:
    """Shown while a block runs. Nothing of it is left behind the block."""

    def __init__(self, command: str) -> None:
        self._text = f"fairlead {command}: opening"
        self._is_shown = False

    def __enter__(self) -> Self:
        self._write(f"{self._text}\r")
        self._is_shown = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.hide()

    def hide(self) -> None:
        """Remove the line, once: the screen opens. Spaces do it in every terminal."""
        if self._is_shown:
            self._is_shown = False
            self._write(f"{' ' * len(self._text)}\r")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
