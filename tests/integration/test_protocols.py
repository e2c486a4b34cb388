"""Other protocols, each with the published client of its own package, against one stack."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from ag_ui.core.types import ResumeEntry

from fairlead_testing.editor import Editor, editor
from fairlead_testing.front_end import run_input, run_thread
from fairlead_testing.other_agent import joined_text, other_agent, state_of, text_of
from fairlead_testing.protocol_stack import guide_block, protocol_stack, shell_prompt
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with protocol_stack(tmp_path_factory.mktemp("protocols")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zed(up: Stack) -> AsyncIterator[Editor]:
    """An editor with the settings of the guide."""
    server = json.loads(guide_block("json"))["agent_servers"]["Fairlead"]
    assert server["command"] == "fairlead"
    assert set(server["env"]) == {"FAIRLEAD_HTTP", "FAIRLEAD_TOKEN"}
    async with editor(up, arguments=server["args"]) as one:
        yield one


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A location that the tool workers may use."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o777)
    return tmp_path


async def test_an_editor_gets_a_text_turn_and_a_tool_turn_with_an_approval(
    zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    await zed.until(lambda: "available_commands_update" in zed.kinds())
    assert [one.name for one in zed.updates[0].available_commands] == ["review"]
    zed.updates.clear()

    ended = await zed.prompt(session, '[[sim: answer="hello editor" chunks=4 delay_ms=80]] hi')

    assert ended.stop_reason == "end_turn"
    assert zed.text() == "hello editor"
    assert zed.kinds().count("agent_message_chunk") > 1

    ended = await zed.prompt(session, shell_prompt("echo hello > made.txt"))

    assert ended.stop_reason == "end_turn"
    assert (place / "made.txt").read_text() == "hello\n"
    assert zed.options == [["once", "always", "reject"]]
    statuses = [u.status for u in zed.updates if u.session_update.startswith("tool_call")]
    assert statuses == ["pending", "in_progress", "completed"]
    assert zed.text() == "hello editordone it"


async def test_the_program_of_the_guide_for_other_agents_prints_the_answer(
    up: Stack, place: Path
) -> None:
    program = place / "agent.py"
    program.write_text(guide_block("python"))
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, str(program)),
        env={**os.environ, "FAIRLEAD_HTTP": up.up.http, "FAIRLEAD_TOKEN": up.up.token or ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await running.communicate()

    assert b"What is open?" in out, err.decode()


async def test_a_front_end_gets_a_text_run_and_a_tool_run_with_an_approval(
    up: Stack, place: Path
) -> None:
    text = '[[sim: answer="hello front end" chunks=4 delay_ms=80]] hi'
    first = await run_thread(up, run_input("thread-1", text, directory=str(place)))

    assert first.types[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    assert first.text() == "hello front end"
    assert first.types.count("TEXT_MESSAGE_CONTENT") > 1
    assert first.end.outcome.type == "success"

    asked = await run_thread(up, run_input("thread-1", shell_prompt("echo hello > made.txt")))
    interrupt = asked.end.outcome.interrupts[0]
    entry = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload={"reply": "once"})
    done = await run_thread(up, run_input("thread-1", None, resume=[entry]))

    assert interrupt.message == "bash: echo hello > made.txt"
    assert (place / "made.txt").read_text() == "hello\n"
    assert done.end.outcome.type == "success"
    assert "TOOL_CALL_RESULT" in done.types
    assert done.text() == "done it"


async def test_another_agent_gets_a_text_task_and_a_tool_task_with_an_approval(
    up: Stack, place: Path
) -> None:
    async with other_agent(up) as other:
        text = '[[sim: answer="hello agent" chunks=4 delay_ms=80]] hi'
        updates = await other.stream(text, [], directory=str(place))
        context = updates[0].task.context_id
        asked = await other.send(shell_prompt("echo hello > made.txt"), context=context)
        done = await other.send({"reply": "once"}, task=asked.id)

    assert joined_text(updates) == "hello agent"
    assert sum(one.HasField("artifact_update") for one in updates) > 1
    assert state_of(asked) == "input_required"
    assert asked.status.message.parts[0].text == "May it bash: echo hello > made.txt?"
    assert (state_of(done), done.id) == ("completed", asked.id)
    assert (place / "made.txt").read_text() == "hello\n"
    assert text_of(done) == "done it"
