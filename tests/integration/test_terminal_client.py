"""OpenCode's published terminal client drives a real stack, unchanged (WIRE-TUI)."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_testing.opencode_terminal import attached, environment, install, run_attached
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

GUIDE = Path(__file__).parents[2] / "docs/guide/clients.md"
CONFIG = """
permissions = [ { action = "bash", resource = "*", effect = "ask" } ]
"""


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


async def test_run_prints_the_answer_and_goes_on_with_the_session(
    up: Stack, tmp_path: Path
) -> None:
    first = await run_attached(up, tmp_path, '[[sim: answer="first answer"]] go')
    second = await run_attached(up, tmp_path, '[[sim: answer="second answer"]] go', "-c")

    assert "first answer" in first
    assert "second answer" in second
    # What was printed before is not printed again.
    assert "first answer" not in second


@pytest.mark.slow
async def test_run_tells_each_step_of_a_tool_turn_as_json(up: Stack, tmp_path: Path) -> None:
    """A question of the model is answered for the client, because nobody can: it would hang."""
    asked = {"questions": [{"question": "Which?", "header": "Which", "options": []}]}
    script = f"[[sim: tool=question args='{json.dumps(asked)}' ; answer=\"all done\"]] go"
    lines = (await run_attached(up, tmp_path, script, "--format", "json")).splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]

    kinds = [event["type"] for event in events]
    assert kinds == ["step_start", "tool_use", "step_finish", "step_start", "text", "step_finish"]
    assert events[1]["part"]["state"]["status"] == "completed"
    assert "decide yourself" in str(events[1]["part"]["state"]["metadata"]["answers"])
    assert events[4]["part"]["text"] == "all done"


@pytest.mark.slow
async def test_a_person_works_in_the_terminal(up: Stack, tmp_path: Path) -> None:
    """Text, a tool with a permission, an interrupt, and a second session."""
    async with attached(up, tmp_path) as terminal:
        await terminal.wait_for("Ask anything")
        await terminal.type('[[sim: answer="hello from the sim"]] one')
        await terminal.wait_for("hello from the sim\n")

        await terminal.type(
            '[[sim: tool=bash args=\'{"command":"echo marker-$((40+2))"}\' ; answer=finished]] two'
        )
        await terminal.wait_for("Permission required")
        await terminal.press("Enter")
        await terminal.wait_for("marker-42")

        await terminal.type("[[sim: chunks=400 delay_ms=50]] three")
        await terminal.wait_for("esc interrupt")
        await terminal.press_until("interrupted", "Escape")

        await terminal.type("/new")
        await terminal.wait_for("Ask anything")
        await terminal.type('[[sim: answer="second session"]] four')
        await terminal.wait_for("second session\n")


@pytest.mark.slow
async def test_the_lines_of_the_guide_reach_a_stack(up: Stack, tmp_path: Path) -> None:
    """`opencode run --attach` as docs/guide/clients.md shows it, in a shell."""
    (lines,) = re.findall(r"(?ms)^```sh\n(.*?)^```", GUIDE.read_text())
    script = "\n".join(line for line in lines.splitlines() if "opencode attach" not in line)
    found = {
        "FAIRLEAD_HTTP": str(up.http.base_url).rstrip("/"),
        "FAIRLEAD_TOKEN": up.up.token or "",
    }
    shell = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        script,
        cwd=tmp_path,
        env={
            **environment(up, tmp_path),
            **found,
            "PATH": f"{install().parent}:{os.environ['PATH']}",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(shell.communicate(), 60)

    assert "You said: What does this project do?" in out.decode()
