"""A line that a person sees at once, until the screen of a command covers it."""

import sys
from types import TracebackType
from typing import Self


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
