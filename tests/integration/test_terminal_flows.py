"""People in OpenCode's published terminal client: undo, redo, compact, shell, fork, questions, a dead gateway."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import run

import pytest
import pytest_asyncio

from fairlead_testing.opencode_terminal import Terminal, attached, install, run_attached
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(400),
]

CONFIG = """
permissions = [ { action = "bash", resource = "*", effect = "ask" } ]

[compaction]
keep_tokens = 50
summary_tokens = 300
"""
GIT = "git init -q . && git -c user.email=a@b -c user.name=a commit -q --allow-empty -m first"
QUESTION = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [
                {"label": "blue", "description": "like the sea"},
                {"label": "red", "description": "like fire"},
            ],
        }
    ]
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    install()
    place = tmp_path_factory.mktemp("terminal")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with files that can be changed back."""
    run(GIT, shell=True, cwd=tmp_path, check=True)  # noqa: S602 - a text of this file
    return tmp_path


async def list_sessions(up: Stack) -> set[str]:
    return {session["id"] for session in (await up.http.get("/api/session")).json()["data"]}


async def say(terminal: Terminal, answer: str) -> None:
    """A prompt and its answer."""
    await terminal.type(f'[[sim: answer="{answer}"]] go')
    await terminal.wait_for(f"{answer}\n")


async def test_a_person_goes_back_and_forth(up: Stack, home: Path) -> None:
    """Undo hides a turn and gives its prompt back, redo shows it again, fork makes another session."""
    async with attached(up, home) as terminal:
        await terminal.wait_for("Ask anything")
        await say(terminal, "first answer")
        await say(terminal, "second answer")

        await terminal.type("/undo")
        await terminal.wait_for("1 message reverted")
        await terminal.wait_for("second answer\n", absent=True)
        await terminal.press("C-u")
        await terminal.type("/undo")
        await terminal.wait_for("2 message reverted")
        await terminal.wait_for("first answer\n", absent=True)
        await terminal.press("C-u")
        await terminal.type("/redo")
        await terminal.wait_for("first answer\n")
        await terminal.type("/redo")
        await terminal.wait_for("second answer\n")

        await terminal.type("/fork")
        await terminal.wait_for("Fork session")
        await terminal.press_until("Fork session", "Enter", absent=True)
        await say(terminal, "answer of the fork")
    assert len(await list_sessions(up)) == 2


async def test_a_person_compacts_runs_a_command_and_answers_a_question(
    up: Stack, home: Path
) -> None:
    async with attached(up, home) as terminal:
        await terminal.wait_for("Ask anything")
        await terminal.type("[[sim: chunks=300 delay_ms=1]] go")
        await terminal.wait_for("word299")
        await say(terminal, "second answer")

        await terminal.type("/compact")
        await terminal.wait_for("Compaction")

        await terminal.press("!")
        await terminal.wait_for("exit shell mode")
        await terminal.type("echo shell-$((40+3))")
        await terminal.wait_for("Permission required")
        await terminal.press("Enter")
        await terminal.wait_for("shell-43")

        asked = json.dumps(QUESTION)
        await terminal.type(f"[[sim: tool=question args='{asked}' ; answer=\"it is known\"]] go")
        await terminal.wait_for("Type your own answer")
        await terminal.press("Enter")
        await terminal.wait_for("it is known\n")


async def test_a_gateway_that_dies_under_a_held_prompt_costs_no_answer(
    up: Stack, home: Path
) -> None:
    """The session goes on without the gateway. The client connects again and shows the whole answer."""
    async with attached(up, home) as terminal:
        await terminal.wait_for("Ask anything")
        await say(terminal, "first answer")
        await terminal.type("[[sim: chunks=60 delay_ms=100]] go")
        await terminal.wait_for("word5")
        up.up.kill("gateway", 0, signal.SIGKILL)
        await up.up.wait_ready()
        await terminal.wait_for("word59")
        await say(terminal, "after the fall")


async def test_a_run_whose_gateway_dies_goes_on_with_the_session(up: Stack, home: Path) -> None:
    """`run` ends with its held prompt. The answer is in the session, and the next run sees it."""
    before = await list_sessions(up)
    running = asyncio.create_task(
        run_attached(up, home, "[[sim: chunks=60 delay_ms=100]] go", checked=False)
    )
    async with asyncio.timeout(60):
        while not (new := await list_sessions(up) - before):
            await asyncio.sleep(0.1)
    (session,) = new
    await up.until(session, "text.started")
    up.up.kill("gateway", 0, signal.SIGKILL)
    await running
    await up.up.wait_ready()

    again = await run_attached(up, home, '[[sim: answer="second answer"]] go', "-s", session)

    assert "second answer" in again
    (text, *_) = [
        event.event for event in await up.events(session) if event.event.type == "text.ended"
    ]
    assert "word59" in text.model_dump()["text"]
