"""`fairlead chat` in real terminals without a stack: what signals and a shell do to it."""

import signal
import sys
from pathlib import Path

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from fairlead_testing.terminal import Terminal

CTRL_Z = "\x1a"
NORMAL_SCREEN = b"\x1b[?1049l"
CURSOR_SHOWN = b"\x1b[?25h"
NO_MOUSE = b"\x1b[?1000l"


def chat_command(server: AnsweringServer) -> list[str]:
    server.answer({"data": []})
    return [sys.executable, "-m", "fairlead_cli", "chat", "--http", server.url]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_the_screen_and_leaves_the_terminal_as_it_was(
    server: AnsweringServer, tmp_path: Path, number: signal.Signals
) -> None:
    command = chat_command(server)
    async with Terminal(command, cwd=tmp_path, env={"HOME": str(tmp_path)}) as terminal:
        await terminal.until("A new session")
        terminal.signal(number)
        assert await terminal.until_exit() == 128 + number

    end = terminal.raw[terminal.raw.rindex(b"A new session") :]
    assert all(code in end for code in (NORMAL_SCREEN, CURSOR_SHOWN, NO_MOUSE))
    assert "Traceback" not in terminal.text


async def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_draws_everything_again(
    server: AnsweringServer, tmp_path: Path
) -> None:
    shell, home = ["bash", "--norc", "--noprofile", "-i"], {"HOME": str(tmp_path), "PS1": "shell> "}
    async with Terminal(shell, cwd=tmp_path, env=home) as terminal:
        await terminal.until("shell>")
        terminal.type(" ".join(chat_command(server)) + "\r")
        await terminal.until("A new session")
        terminal.type("a draft")
        await terminal.until("│ a draft")
        terminal.type(CTRL_Z)
        await terminal.until("Stopped", "shell>")
        assert NORMAL_SCREEN in terminal.raw
        terminal.type("clear; fg\r")
        await terminal.until("│ a draft", "ready")
        terminal.type(" goes on")
        await terminal.until("│ a draft goes on")
