"""`fairlead top` in a real terminal: narrow, without colour, through a gateway that dies."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_testing.stack import Stack
from fairlead_testing.terminal import CTRL_C, Terminal
from tests.integration.kept_screens import keep

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is the terminal"),
]
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class TmuxTerminal:
    """A tmux server of its own with one window."""

    socket: str
    environment: dict[str, str]

    async def run(self, *arguments: str) -> str:
        tmux = await asyncio.create_subprocess_exec(
            *("tmux", "-L", self.socket, "-f", "/dev/null", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self.environment,
        )
        output, _ = await tmux.communicate()
        return output.decode()

    async def start(self, *, width: int) -> None:
        command = f"{sys.executable} -m fairlead_cli top --every 0.5; echo left with $?; sleep 600"
        await self.run("new-session", "-d", "-x", str(width), "-y", "24", "-s", "top", command)

    async def see(self, *words: str) -> str:
        """Wait until the screen has all the words."""
        screen = ""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not all(word in screen for word in words):
                    await asyncio.sleep(0.2)
                    screen = await self.run("capture-pane", "-p", "-t", "top")
        except TimeoutError:
            pytest.fail(f"{words} did not come:\n{screen}")
        return screen

    async def press(self, *keys: str) -> None:
        await self.run("send-keys", "-t", "top", *keys)


@pytest_asyncio.fixture(loop_scope="module")
async def terminal(up: Stack, tmp_path: Path) -> AsyncIterator[TmuxTerminal]:
    environment = {
        **os.environ,
        "FAIRLEAD_HTTP": up.up.http,
        "FAIRLEAD_TOKEN": up.up.token or "",
        "TERM": "screen",
        "LANG": "C.UTF-8",
    }
    tmux = TmuxTerminal(f"fairlead-{os.getpid()}-{tmp_path.name}", environment)
    yield tmux
    await tmux.run("kill-server")


@pytest.mark.parametrize("width", [40, 120])
async def test_top_lives_through_a_gateway_that_dies_and_interrupts_from_the_keyboard(
    up: Stack, terminal: TmuxTerminal, width: int
) -> None:
    """C-11: the screen goes on by itself, and the cursor stays on its session."""
    session = await busy_session(up)
    await terminal.start(width=width)
    await terminal.see("1 running", "STATE", "interrupt")

    up.up.kill("gateway", 0, signal.SIGKILL)
    await up.up.wait_ready()
    other = await busy_session(up)
    await terminal.see("2 running")

    await terminal.press("i")
    await up.until(session, "interrupt.requested")
    await terminal.press("q")
    await terminal.see("left with 0")
    await up.client.interrupt(other)
    await up.client.wait(other)


async def test_a_person_answers_a_question_and_opens_a_session_from_the_list(
    up: Stack, tmp_path: Path
) -> None:
    question = (
        '{"questions":[{"question":"Which way?","header":"Way","options":'
        '[{"label":"Left","description":"the old one"},{"label":"Right","description":""}]}]}'
    )
    session = await up.session()
    await up.client.prompt(
        session, f"Go. [[sim: tool=question args='{question}' ; answer='Left.']]"
    )
    command = [sys.executable, "-m", "fairlead_cli", "top", "--every", "0.5"]
    server = {"FAIRLEAD_HTTP": up.up.http, "FAIRLEAD_TOKEN": up.up.token or ""}
    env = {"HOME": str(tmp_path), **server}
    async with Terminal(command, cwd=tmp_path, env=env, size=(80, 24)) as terminal:
        await terminal.until("1 asking", "asks: Which way?")
        terminal.type("a")
        asked = await terminal.until("1. Left  the old one", "Esc leaves it open")
        keep("top-question", asked[asked.index("───") :])
        terminal.type("1")
        await terminal.until("0 asking", gone="1. Left")

        terminal.type("o")
        await terminal.until("Which way? → Left", "  Left.", "ready")
        terminal.type(CTRL_C)
        await terminal.until("Ctrl-C again leaves.")
        terminal.type(CTRL_C)
        await terminal.until("STATE", "TITLE", "interrupt")
        terminal.type("q")
        assert await terminal.until_exit() == 0


async def busy_session(up: Stack) -> str:
    """A session whose model writes for a minute."""
    session = await up.session()
    await up.client.prompt(session, f"[[sim: answer='{'word ' * 200}' chunks=200 delay_ms=300]] go")
    await up.until(session, "attempt.dispatched")
    return session


async def test_a_wrong_key_is_said_in_the_terminal_before_the_screen_opens(
    terminal: TmuxTerminal,
) -> None:
    terminal.environment["FAIRLEAD_TOKEN"] = "flk_wrong"  # noqa: S105 - none

    await terminal.start(width=100)

    screen = await terminal.see("left with 5")
    assert "--token" in screen
    assert "Traceback" not in screen
