"""`fairlead top` in real terminals without a stack: narrow, without colour, and with a wrong address."""

import re
import sys
from pathlib import Path

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from apps.cli.tests.top.test_top_look import SESSION, serve
from fairlead_cli.command_line.exit_codes import USAGE
from fairlead_testing.terminal import Terminal

COLOUR = re.compile(rb"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d|10\d)(?:;[\d;]*)?m")


def top(url: str, place: Path, *, size: tuple[int, int] = (100, 24), **variables: str) -> Terminal:
    command = [sys.executable, "-m", "fairlead_cli", "top", "--http", url, "--every", "0.2"]
    return Terminal(command, cwd=place, size=size, env={"HOME": str(place), **variables})


@pytest.mark.parametrize("width", [40, 100])
async def test_a_terminal_without_colour_gets_none_and_a_cursor_that_is_seen(
    server: AnsweringServer, tmp_path: Path, width: int
) -> None:
    serve(server, "running", "running")

    async with top(server.url, tmp_path, size=(width, 24), NO_COLOR="1") as terminal:
        screen = await terminal.until("running", "STATE", f"{SESSION}  It is running.")
        assert terminal.is_reversed("running")
        terminal.type("q")
        assert await terminal.until_exit() == 0

    assert COLOUR.findall(terminal.raw) == []
    assert all(len(line) <= width for line in screen.split("\n"))
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(("command", "instead"), [("top", "--json"), ("chat", "fairlead prompt")])
async def test_a_terminal_that_only_prints_lines_gets_a_sentence(
    tmp_path: Path, command: str, instead: str
) -> None:
    arguments = [sys.executable, "-m", "fairlead_cli", command, "--http", "http://127.0.0.1:9"]

    async with Terminal(arguments, cwd=tmp_path, env={"TERM": "dumb"}) as terminal:
        assert await terminal.until_exit() == USAGE

    assert instead in terminal.text
    assert b"\x1b" not in terminal.raw


async def test_a_terminal_with_colour_gets_some(server: AnsweringServer, tmp_path: Path) -> None:
    serve(server, "running", "running")

    async with top(server.url, tmp_path) as terminal:
        await terminal.until("running", "STATE")
        terminal.type("q")
        assert await terminal.until_exit() == 0

    assert COLOUR.findall(terminal.raw) != []
