"""Measures `fairlead chat` in a real terminal: its start, and its processor time while text streams in."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_cli.bench.cost.calibration import Calibration
from fairlead_cli.bench.cost.process_usage import read_usage
from fairlead_cli.bench.suite import temporary_directory
from fairlead_cli.embedded.stack import run_stack
from fairlead_client.async_client.client import AsyncFairlead

FRAGMENTS_PER_S: Final = 200
SECONDS: Final = 10.0
LINES, COLUMNS = 40, 100
START_S_MAX: Final = 60.0
_PARAGRAPH: Final = (
    "The **harbour** has `three` quays, and ships leave it at high water when the wind is fair and"
    " the pilot is aboard; each of them carries salt, timber and letters to the islands. "
)


@dataclass
class ChatScreen:
    """A terminal that only counts what is written to it."""

    pid: int
    shown: bytes = b""
    count: int = 0

    def take(self, piece: bytes) -> None:
        self.count += len(piece)
        self.shown = (self.shown + piece)[-65536:]

    async def until(self, text: bytes) -> None:
        """Wait until a text was written."""
        async with asyncio.timeout(START_S_MAX):
            while text not in self.shown:  # noqa: ASYNC110 - bytes come from a reader
                await asyncio.sleep(0.005)

    def cpu_ms(self) -> float:
        return read_usage({"chat": (self.pid,)})["chat"].cpu_ms


async def run_chat_bench(*, scale: float, progress: Callable[[str], None]) -> dict[str, float]:
    """Start a stack and a chat, and let an answer stream in. `scale` 1 means ten seconds of it."""
    seconds = max(2.0, SECONDS * scale)
    with temporary_directory() as directory:
        progress("starting the stack")
        async with (
            run_stack(directory, sim=True, solo=True) as stack,
            AsyncFairlead(stack.http, token=stack.state.token) as client,
        ):
            session = (await client.create()).id
            progress("starting the terminal")
            async with _open_chat(directory, session) as (screen, start_ms):
                await asyncio.sleep(2.0)
                quiet = await _share(screen, 3.0)
                progress("streaming")
                await client.prompt(session, _streamed_answer(seconds + 4))
                await screen.until(b"harbour")
                await asyncio.sleep(1.0)
                before = screen.count
                busy = await _share(screen, seconds)
                written = (screen.count - before) / seconds / 1000
    return {
        "first screen, ms": start_ms,
        "quiet, % of a core": quiet,
        f"{FRAGMENTS_PER_S} fragments a second, % of a core": busy,
        "written meanwhile, kB/s": written,
    }


def _streamed_answer(seconds: float) -> str:
    """A prompt whose answer comes in fragments, for so long."""
    count = int(FRAGMENTS_PER_S * seconds)
    text = "\n\n".join([_PARAGRAPH * 3] * (count // 50))
    return f"[[sim: chunks={count} delay_ms={1000 / FRAGMENTS_PER_S} answer='{text}']]"


async def _share(screen: ChatScreen, seconds: float) -> float:
    """The share of a core that the chat uses, scaled by the fixed loop."""
    async with Calibration() as calibration:
        began, before = time.monotonic(), screen.cpu_ms()
        await asyncio.sleep(seconds)
        used_ms, wall_ms = screen.cpu_ms() - before, (time.monotonic() - began) * 1000
    return 100 * used_ms * calibration.factor / wall_ms


@asynccontextmanager
async def _open_chat(state: Path, session: str) -> AsyncIterator[tuple[ChatScreen, float]]:
    """A chat in a terminal of its own, and how long its first screen took."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = ["chat", "--state", str(state), "--resume", session]
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(state)}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", *command),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        start_new_session=True,
    )
    os.close(terminal)
    screen = ChatScreen(process.pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(controller, _read, controller, screen)
    try:
        await screen.until(b"ready")
        yield screen, (time.monotonic() - began) * 1000
    finally:
        loop.remove_reader(controller)
        process.kill()
        await process.wait()
        os.close(controller)


def _read(controller: int, screen: ChatScreen) -> None:
    # A terminal whose program has ended cannot be read.
    with suppress(OSError):
        screen.take(os.read(controller, 65536))
