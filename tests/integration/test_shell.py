"""`bash` through a whole stack: called by a model, heard live, bounded, kept, interrupted."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_schema.events import ToolFailed, ToolSucceeded
from fairlead_schema.tools.content import TextContent, managed_id
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_testing.stack import Stack, check_log, event_types, stack
from fairlead_tools.shell.command import marked_processes

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

WAIT_S = 30.0
CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack whose agent may do everything, in a directory of its own."""
    place: Path = tmp_path_factory.mktemp("shell")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    (place / "work").mkdir()
    config = place / "fairlead.toml"
    config.write_text(f"{CONFIG}\n[location]\ndefault = {json.dumps(str(place / 'work'))}\n")
    async with stack(place / "state", sim=True, config=config) as running:
        yield running


async def ask(up: Stack, command: str, **more: Any) -> str:  # noqa: ANN401
    """A session whose model calls bash once and then answers."""
    session = await up.session()
    args = json.dumps({"command": command, **more})
    text = f"[[sim: tool=bash args='{args}' ; answer=done]]"
    answer = await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": text}})
    assert "data" in answer, answer
    return session


async def read_stream(up: Stack, session: str, until: str) -> list[dict[str, Any]]:
    """The session's stream up to an event."""
    events: list[dict[str, Any]] = []
    url = f"/api/session/{session}/stream"
    async with asyncio.timeout(WAIT_S), up.http.stream("GET", url) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["type"] == until:
                    break
    return events


async def wait_for_settlement(up: Stack, session: str) -> ToolSucceeded | ToolFailed:
    log = await up.wait_until_rested(session)
    check_log(log)
    (event,) = [
        recorded.event for recorded in log if isinstance(recorded.event, ToolSucceeded | ToolFailed)
    ]
    return event


async def test_a_model_runs_a_command_and_reads_its_output(up: Stack) -> None:
    """L-54, E-01: called, run, settled with two texts, and the turn goes on."""
    session = await ask(up, "pwd >&2 && exit 4")

    event = await wait_for_settlement(up, session)

    assert isinstance(event, ToolSucceeded)
    output, status = event.content
    assert isinstance(output, TextContent)
    assert output.text.endswith("/work\n")
    assert status == TextContent(text="Exit code: 4")
    assert event.structured == {"exit": 4, "truncated": False}
    assert event_types(await up.events(session)).count("step.ended") == 2


async def test_long_output_is_live_bounded_and_kept(up: Stack) -> None:
    """E-28, E-29, J-30, L-59: deltas and progress while it runs, both ends after, the whole aside."""
    session = await ask(up, "seq 1 30000; sleep 1.6; echo the end")

    stream = await read_stream(up, session, "session.next.tool.success")

    kinds = [event["type"] for event in stream]
    assert "session.next.tool.output.delta" in kinds
    assert "session.next.tool.progress" in kinds
    live = "".join(
        event["data"]["delta"]
        for event in stream
        if event["type"] == "session.next.tool.output.delta"
    )
    assert live.endswith("the end\n")
    event = await wait_for_settlement(up, session)
    assert isinstance(event, ToolSucceeded)
    (preview,) = event.content
    assert isinstance(preview, TextContent)
    assert preview.text.startswith("1\n2\n3\n")
    assert preview.text.endswith("30000\nthe end\nExit code: 0")
    assert len(preview.text.encode()) <= 51_200
    (path,) = event.output_paths or ()
    whole = await up.http.get(f"/api/tool-output/{managed_id(path)}")
    numbers = "".join(f"{number}\n" for number in range(1, 30_001))
    assert whole.text == f"{numbers}the end\nExit code: 0"
    part = await up.http.get(f"/api/tool-output/{managed_id(path)}", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.text) == (httpx.codes.PARTIAL_CONTENT, "1\n2\n")


async def test_an_interrupt_ends_the_processes(up: Stack) -> None:
    """E-16, L-58: the command and what it started, and the settlement says so."""
    session = await ask(up, "echo begun; setsid sleep 60 & sleep 60")
    await read_stream(up, session, "session.next.tool.output.delta")

    await up.http.post(f"/api/session/{session}/interrupt")
    event = await wait_for_settlement(up, session)

    assert isinstance(event, ToolFailed)
    assert event.error.message == INTERRUPTED_TOOL
    mark = f"{session}:{event.assistant_message_id}:{event.call_id}"
    async with asyncio.timeout(WAIT_S):
        while await asyncio.to_thread(marked_processes, mark):
            await asyncio.sleep(0.05)
