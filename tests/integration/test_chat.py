"""`fairlead chat` in a real terminal against a real stack: the shortest way through everything."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_testing.stack import Stack, stack
from fairlead_testing.terminal import CTRL_C, CTRL_O, Terminal

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place = tmp_path_factory.mktemp("chat")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    async with stack(place / "state", solo=True) as running:
        yield running


async def test_a_person_asks_permits_unfolds_and_leaves_while_the_session_goes_on(
    up: Stack, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("hello\n")
    state = str(up.up.state.root)
    home = {"HOME": str(tmp_path)}
    command = [FAIRLEAD, "chat", "--state", state]
    async with Terminal(command, cwd=tmp_path, env=home) as terminal:
        await terminal.until("A new session", "ready")
        terminal.send("Hi [[sim: answer='# Title\n\nSome **bold** words.']]")
        await terminal.until("\n  Title\n", "Some bold words.", "ready")

        terminal.send(
            '[[sim: tool=bash args=\'{"command":"seq 10 19"}\''
            " tool=read args='{\"path\":\"/etc/hostname\"}' ; answer='All done.']]"
        )
        await terminal.until(
            "✓ bash seq 10 19", "wants to work outside", "1. Yes, once", "asks you"
        )
        terminal.type("1")
        await terminal.until("Permitted once", "All done.", "ready", gone="│ 19")
        terminal.type(CTRL_O)
        await terminal.until("│ 19")

        terminal.type(CTRL_C)
        await terminal.until("Ctrl-C again leaves. The session goes on.")
        terminal.type(CTRL_C)
        assert await terminal.until_exit() == 0
        assert "The session goes on: fairlead chat --resume ses_" in terminal.text


async def test_a_history_is_compacted_and_the_talk_goes_on(up: Stack, tmp_path: Path) -> None:
    command = [FAIRLEAD, "chat", "--state", str(up.up.state.root)]
    async with Terminal(command, cwd=tmp_path, env={"HOME": str(tmp_path)}) as terminal:
        await terminal.until("A new session", "ready")
        terminal.send("/compact")
        await terminal.until("There is no session yet")
        terminal.type(CTRL_C)
        await terminal.until("ready", gone="│ /compact")
        terminal.send("Hello")
        await terminal.until("You said: Hello", "ready")
        terminal.send("/compact")
        await terminal.until("Not compacted: the summary is no smaller")

        terminal.send("Talk. [[sim: chunks=3000]]")
        await terminal.until("word2999", "ready")
        terminal.send("/compact")
        await terminal.until("≡ The history is now this summary:", "ready")

        terminal.send("Go on.")
        await terminal.until("You said: Go on.", "ready")
        assert "Traceback" not in terminal.text
