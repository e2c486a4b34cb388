"""What a person puts into a session: prompts that name things, and commands of their own."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio

from fairlead_schema.events import ShellRequested
from fairlead_schema.record import Recorded
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_testing.session_driver import events_of, force, say, wait_until_settled
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
[location]
default = {work}

[skills]
config_directory = {nowhere}

[command.status]
template = "Say what $1 holds.\\n!`echo ran >> template; cat $1`"

[reference.motto]
text = "Measure twice."
"""
SKILL = "---\nname: sailing\nslash: true\n---\nMind the wind on $1."


@dataclass(frozen=True)
class Desk:
    """A stack and the directory its sessions work in."""

    up: Stack
    work: Path

    async def run(self, session: str, command: str, **fields: object) -> dict[str, Any]:
        """Ask for a command over HTTP; the answer is its receipt."""
        body = {"command": command, **fields}
        answer = await self.up.http.post(f"/api/session/{session}/shell", json=body)
        assert answer.status_code == 200, answer.text
        receipt: dict[str, Any] = answer.json()["data"]
        return receipt

    async def wait_for_file(self, name: str) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not (self.work / name).exists():
                await asyncio.sleep(0.02)

    def runs(self, name: str) -> int:
        return len((self.work / name).read_text().splitlines())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk() -> AsyncIterator[Desk]:
    with TemporaryDirectory() as place:
        state, work = Path(place) / "state", Path(place) / "work"
        (work / ".fairlead/skills").mkdir(parents=True)
        (work / ".fairlead/skills/sailing.md").write_text(SKILL)
        (work / "notes").mkdir()
        (work / "cargo.txt").write_text("tea")
        config = Path(place) / "fairlead.toml"
        config.write_text(CONFIG.format(work=f'"{work}"', nowhere=f'"{place}/nowhere"'))
        async with stack(state, config=config, sim=True) as up:
            yield Desk(up, work)


def outputs(log: list[Recorded]) -> list[str]:
    return [event.output for event in events_of(log, "shell.ended")]


async def test_a_persons_command_runs_in_the_location_and_the_next_turn_sees_it(desk: Desk) -> None:
    """O-03, I-07: the command starts no turn, and an exact retry runs nothing."""
    up = desk.up
    session = await up.session()
    receipt = await desk.run(session, "echo ran >> greeting; echo hello from $PWD", id="msg_own1")
    log = await wait_until_settled(up, session)
    again = await desk.run(session, "echo ran >> greeting; echo hello from $PWD", id="msg_own1")
    other = await up.http.post(
        f"/api/session/{session}/shell", json={"id": "msg_own1", "command": "true"}
    )

    assert outputs(log)[0].startswith(f"hello from {desk.work}")
    assert desk.runs("greeting") == 1
    assert again == receipt | {"startedSeq": again["startedSeq"]}
    assert other.status_code == 409
    assert events_of(log, "attempt.dispatched") == []
    await say(up, session, "what did I run?")
    await up.until(session, "step.ended")
    messages = (await up.http.get(f"/api/session/{session}/message")).json()["data"]
    shown = next(message for message in messages if message["type"] == "shell")
    assert shown["output"] == outputs(log)[0]
    await wait_until_settled(up, session)
    assert desk.runs("greeting") == 1


@pytest.mark.slow
async def test_a_command_whose_worker_is_killed_is_interrupted_and_never_runs_again(
    desk: Desk,
) -> None:
    """E-20: nobody knows how far the command came."""
    up = desk.up
    session = await up.session()
    await desk.run(session, "echo ran >> widowed; sleep 60")
    await up.until(session, "tool.started")
    await desk.wait_for_file("widowed")

    up.up.kill("tools", 0, signal.SIGKILL)
    log = await wait_until_settled(up, session)
    await up.up.wait_ready()

    assert outputs(log) == [INTERRUPTED_TOOL]
    assert desk.runs("widowed") == 1


async def test_a_command_whose_ingest_died_before_its_wake_runs_once(desk: Desk) -> None:
    """P-03: the sweep finds the command in the log."""
    up = desk.up
    session = await up.session()
    requested = ShellRequested(
        message_id="msg_own2", call_id="call_own2", command="echo ran >> orphan", agent="build"
    )
    await force(up, session, requested)
    up.up.kill("ingest", 0, signal.SIGKILL)

    log = await wait_until_settled(up, session)
    await up.up.wait_ready()

    assert len(outputs(log)) == 1
    assert desk.runs("orphan") == 1


async def test_a_template_runs_its_command_before_its_prompt_and_a_retry_runs_nothing(
    desk: Desk,
) -> None:
    """P-22: over HTTP, through the runner and a worker, once."""
    up = desk.up
    session = await up.session()
    body = {"id": "msg_own3", "prompt": {"text": "/status cargo.txt"}}
    first = await up.http.post(f"/api/session/{session}/prompt", json=body)
    log = await wait_until_settled(up, session)
    again = await up.http.post(f"/api/session/{session}/prompt", json=body)
    await wait_until_settled(up, session)

    prompt = first.json()["data"]["prompt"]
    assert prompt["text"].startswith("Say what cargo.txt holds.")
    assert prompt["source"]["text"] == "/status cargo.txt"
    assert again.json()["data"]["prompt"] == prompt
    types = [recorded.event.type for recorded in log]
    assert types.index("shell.ended") < types.index("prompt.promoted")
    assert outputs(log)[0].startswith("tea")
    assert desk.runs("template") == 1
    assert "step.ended" in types


async def test_skills_references_and_synthetic_text_reach_the_model(desk: Desk) -> None:
    """P-22, P-24: over NATS and HTTP, with the tools service reading the location."""
    up = desk.up
    session = await up.session()
    path = f"/api/session/{session}"
    skill = await up.http.post(f"{path}/skill", json={"skill": "sailing", "resume": False})
    missing = await up.http.post(f"{path}/skill", json={"skill": "flying"})
    synthetic = {"text": "/sailing x", "synthetic": True}
    await up.http.post(f"{path}/prompt", json={"prompt": synthetic, "resume": False})
    asked = {"sessionID": session, "prompt": {"text": "/sailing @motto @nowhere"}}
    receipt = (await up.ask("session.prompt", asked))["data"]
    log = await wait_until_settled(up, session)

    assert skill.status_code == 200, skill.text
    assert missing.status_code == 400
    assert receipt["prompt"]["text"].startswith("Mind the wind on @motto @nowhere.")
    assert receipt["prompt"]["text"].endswith("Measure twice.")
    messages = (await up.http.get(f"{path}/message")).json()["data"]
    kinds = {message["text"][:12]: message["type"] for message in messages if "text" in message}
    assert kinds["# Skill: sai"] == "synthetic"
    assert kinds["/sailing x"] == "synthetic"
    assert kinds["Mind the win"] == "user"
    assert [event.prompt.synthetic for event in events_of(log, "prompt.promoted")] == [
        True,
        True,
        None,
    ]


async def test_a_file_is_mentioned_by_its_path(desk: Desk) -> None:
    """P-22: the attachment leads to the file of the location."""
    up = desk.up
    session = await up.session()
    asked = {"sessionID": session, "prompt": {"text": "read @cargo.txt"}, "resume": False}
    receipt = (await up.ask("session.prompt", asked))["data"]

    (file,) = receipt["prompt"]["files"]
    assert file["uri"] == (desk.work / "cargo.txt").resolve().as_uri()
    assert file["source"] == {"start": 5, "end": 15, "text": "@cargo.txt"}
    assert receipt["prompt"]["source"]["mentions"] == [
        {"kind": "file", "name": "cargo.txt", "start": 5, "end": 15}
    ]
