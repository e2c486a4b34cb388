"""What a person puts into a session beside prompts: commands of their own, through a whole stack."""

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
"""


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
        work.mkdir()
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
