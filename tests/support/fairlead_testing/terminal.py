"""A program in a real terminal: a test types, and reads what stands on the screen."""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pexpect
import pyte

WAIT_S: Final = 60.0
ENTER: Final = "\r"
ESCAPE: Final = "\x1b"
CTRL_C: Final = "\x03"
CTRL_O: Final = "\x0f"
TAB: Final = "\t"
UP: Final = "\x1b[A"
PAGE_UP: Final = "\x1b[5~"


class Terminal:
    """A pseudo-terminal with a program in it, and its screen as text."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        size: tuple[int, int] = (100, 30),
        env: Mapping[str, str] | None = None,
    ) -> None:
        columns, lines = size
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """Everything that the program wrote."""
        self._process = pexpect.spawn(
            command[0],
            list(command[1:]),
            cwd=str(cwd),
            dimensions=(lines, columns),
            env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", **(env or {})},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill(signal.SIGKILL)
        await asyncio.to_thread(self._process.close)

    @property
    def text(self) -> str:
        """The screen now, without the spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def is_reversed(self, text: str) -> bool:
        """Whether a line of the screen begins with a text in reverse."""
        return any(
            line.strip().startswith(text) and self._screen.buffer[number][line.index(text)].reverse
            for number, line in enumerate(self._screen.display)
        )

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "the program was started"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return None if self._process.isalive() else self._process.exitstatus

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self._process.kill(number)

    def type(self, text: str | bytes) -> None:
        """Type keys, as a terminal sends them."""
        self._process.send(text)

    def paste(self, text: str) -> None:
        """Paste, as a terminal sends it."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def send(self, text: str) -> None:
        """Paste a short text, and press Enter."""
        self.paste(text)
        self.type(ENTER)

    def resize(self, columns: int, lines: int) -> None:
        self._process.setwinsize(lines, columns)
        self._screen.resize(lines, columns)

    async def until(self, *texts: str, gone: str | None = None) -> str:
        """Wait until all texts stand on the screen, and one does not; the screen then."""
        try:
            async with asyncio.timeout(WAIT_S):
                while True:
                    self._read()
                    shown = self.text
                    if all(text in shown for text in texts) and (gone is None or gone not in shown):
                        return shown
                    await asyncio.sleep(0.03)
        except TimeoutError:
            raise AssertionError(
                f"the screen has not {texts} (gone {gone}):\n{self.text}"
            ) from None

    async def until_exit(self) -> int:
        """Wait until the program has ended; its exit code."""
        async with asyncio.timeout(WAIT_S):
            while self._process.isalive():
                self._read()
                await asyncio.sleep(0.03)
        self._read()
        code: int = self._process.exitstatus or 0
        return code

    def _read(self) -> None:
        with suppress(pexpect.TIMEOUT, pexpect.EOF):
            while True:
                piece: Any = self._process.read_nonblocking(65536, timeout=0)
                self.raw += piece
                self._stream.feed(piece)


_CHANGING: Final = (
    (re.compile(r"\$\d[\d.]*"), "$…"),
    (re.compile(r"[\d.]+k?/200k \(\d+%\)"), "…/200k"),
    (re.compile(r"  \d+s(?= |$)", re.MULTILINE), ""),
    (re.compile(r"[◐◓◑◒]"), "◐"),
    (re.compile(r"[▁▂▃▄▅▆▇█]"), " "),
    (re.compile(r"ses_\w+"), "ses_…"),
)


def steady(screen: str) -> str:
    """A screen without what differs from run to run."""
    for pattern, replacement in _CHANGING:
        screen = pattern.sub(replacement, screen)
    return "\n".join(line.rstrip() for line in screen.split("\n")) + "\n"
