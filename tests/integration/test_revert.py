"""Reverts through a whole stack: undo, redo, a running drain, and a worker that is killed half-way."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_schema.events import RevertStaged, StepEnded
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""


class Project:
    """A stack, and a git worktree in which its sessions work."""

    def __init__(self, up: Stack, root: Path, state: Path) -> None:
        self.up = up
        self.root = root
        self.state = state

    def text(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None

    async def session(self) -> str:
        return await self.up.session(location={"directory": str(self.root)})

    async def say(self, session: str, command: str) -> None:
        """A prompt whose model runs one command, until the session rests."""
        await self.begin(session, command)
        await self.up.wait_until_rested(session)

    async def begin(self, session: str, command: str) -> None:
        args = json.dumps({"command": command})
        text = f"[[sim: tool=bash args='{args}' ; answer=done]]"
        answer = await self.up.ask(
            "session.prompt", {"sessionID": session, "prompt": {"text": text}}
        )
        assert "data" in answer, answer

    async def post(self, session: str, act: str, **body: Any) -> Any:  # noqa: ANN401
        url = f"/api/session/{session}/revert/{act}"
        answer = await self.up.http.post(url, json=body or None, timeout=TIMEOUT_S)
        assert answer.status_code in {200, 204, 404, 409}, answer.text
        return answer.json() if answer.content else None

    async def first_message(self, session: str) -> str:
        (first, *_rest) = await self.up.client.active_messages(session)
        return str(first["id"])

    async def command(self, *arguments: str) -> str:
        """A command of the terminal. Its exit code must be zero."""
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "fairlead_cli",
                *arguments,
                "--state",
                str(self.state),
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output
        return output.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Project]:
    place: Path = tmp_path_factory.mktemp("revert")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    root = place / "work"
    root.mkdir()
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(root)], check=True)
    config = place / "fairlead.toml"
    config.write_text(f"{CONFIG}\n[location]\ndefault = {json.dumps(str(root))}\n")
    async with stack(place / "state", sim=True, config=config) as running:
        yield Project(running, root, place / "state")


async def test_undo_and_redo_in_the_terminal(project: Project) -> None:
    """N-02 to N-08, D-36: files follow the boundary, and a new prompt makes it final."""
    (project.root / "a.txt").write_text("0\n")
    session = await project.session()
    await project.say(session, "echo 1 > a.txt")
    await project.say(session, "echo 2 > a.txt; echo 2 > b.txt")
    log = await project.up.events(session)
    changed = [event.event.files for event in log if isinstance(event.event, StepEnded)]
    assert changed == [("a.txt",), (), ("a.txt", "b.txt"), ()]

    shown = await project.command("undo", session)
    assert (project.text("a.txt"), project.text("b.txt")) == ("1\n", None)
    assert "deleted  'b.txt' +0 -1" in shown
    await project.command("undo", session)
    assert project.text("a.txt") == "0\n"
    await project.command("redo", session)
    assert project.text("a.txt") == "1\n"
    await project.command("redo", session)
    assert (project.text("a.txt"), project.text("b.txt")) == ("2\n", "2\n")
    info = await project.up.client.get(session)
    assert info.revert is None

    await project.command("undo", session)
    await project.say(session, "echo 3 > c.txt")
    assert (project.text("a.txt"), project.text("c.txt")) == ("1\n", "3\n")
    left = await project.up.client.active_messages(session)
    assert [message["type"] for message in left] == ["user", "assistant", "assistant"] * 2
    check_log(await project.up.events(session))


async def test_a_session_goes_back_before_its_first_prompt(project: Project) -> None:
    session = await project.session()
    await project.say(session, "echo 1 > first.txt")

    assert "Undone from" in await project.command("undo", session)
    assert project.text("first.txt") is None
    await project.command("redo", session)
    assert project.text("first.txt") == "1\n"

    await project.command("undo", session)
    await project.say(session, "echo 2 > second.txt")
    left = await project.up.client.active_messages(session)
    assert [message["type"] for message in left] == ["user", "assistant", "assistant"]
    assert left == await project.up.messages(session), "the read models cut the same messages"
    check_log(await project.up.events(session))


async def test_a_stage_stops_a_running_drain_first(project: Project) -> None:
    """N-01, N-08, N-11: the files change back after the command is dead; unknown messages are refused."""
    (project.root / "slow.txt").write_text("before\n")
    session = await project.session()
    await project.begin(session, "echo after > slow.txt; sleep 60; echo late > slow.txt")
    async with asyncio.timeout(TIMEOUT_S):
        while project.text("slow.txt") != "after\n":
            await asyncio.sleep(0.05)
    missing = await project.post(session, "stage", messageID="msg_none")
    assert missing["_tag"] == "MessageNotFoundError"

    staged = await project.post(session, "stage", messageID=await project.first_message(session))

    assert project.text("slow.txt") == "before\n"
    assert [(file["path"], file["additions"]) for file in staged["data"]["files"]] == [
        ("slow.txt", 1)
    ]
    before = await project.up.client.active_messages(session)
    await project.post(session, "commit")
    types = event_types(await project.up.wait_until_rested(session))
    assert types.index("interrupt.requested") < types.index("revert.requested")
    assert types[-1] == "revert.committed" or "revert.committed" in types
    left = await project.up.client.active_messages(session)
    assert [message["type"] for message in left] == ["user"]
    at = f"/api/session/{session}/message"
    assert (await project.up.http.get(at)).json()["data"] == left
    shown = [(await project.up.http.get(f"{at}/{item['id']}")).status_code for item in before]
    assert shown == [200, *[404] * (len(before) - 1)]
    assert len(before) > 1, "the revert removed something"
    check_log(await project.up.events(session))


@pytest.mark.slow
async def test_a_worker_killed_in_a_restore_leaves_one_of_two_states(project: Project) -> None:
    """SIGKILL while files change back: the next worker finishes what the log has begun."""
    count = 600
    many = project.root / "many"
    many.mkdir()
    for index in range(count):
        (many / f"{index:04}.txt").write_text("before\n")
    session = await project.session()
    await project.say(session, "for file in many/*; do echo after > $file; done")
    assert {path.read_text() for path in many.iterdir()} == {"after\n"}

    staging = asyncio.create_task(
        project.post(session, "stage", messageID=await project.first_message(session))
    )
    async with asyncio.timeout(TIMEOUT_S):
        while (many / "0000.txt").read_text() == "after\n":
            await asyncio.sleep(0.001)
    project.up.up.kill("tools", 0, signal.SIGKILL)
    states = {path.read_text() for path in many.iterdir() if path.suffix == ".txt"}

    staged = await staging

    assert states == {"before\n", "after\n"}, "the worker died in the middle"
    assert {path.read_text() for path in many.iterdir()} == {"before\n"}
    assert len(staged["data"]["files"]) == count
    log = await project.up.wait_until_rested(session)
    assert sum(isinstance(event.event, RevertStaged) for event in log) == 1
    check_log(log)
    await project.post(session, "clear")
    assert {path.read_text() for path in many.iterdir()} == {"after\n"}
