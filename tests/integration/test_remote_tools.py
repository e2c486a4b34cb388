"""Tools that live elsewhere, through real sessions: services over NATS, and tool servers."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from fairlead_cli.embedded.ports import free_port
from fairlead_schema import subjects
from fairlead_schema.events import StepStarted, ToolCalled, ToolInputStarted
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor, managed_id
from fairlead_schema.tools.request import ToolRequest
from fairlead_service import ids
from fairlead_service.config.sections import ToolsConfig
from fairlead_testing.driving import SIM, admitted, crossed, force, of, say, settled, tool_revision
from fairlead_testing.stack import PATIENCE_S, Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FRESH_S = 1.1
OUTPUT_BYTES_MAX = ToolsConfig().output_bytes_max
SUPPORT = Path(__file__).parents[1] / "support"
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DOUBLE: dict[str, Any] = {
    "name": "double",
    "description": "doubles",
    "inputSchema": NUMBERS,
    "outputSchema": NUMBERS,
    "subject": "fairlead.app.default.double",
    "timeoutMs": 30_000,
}
QUEUED = {**DOUBLE, "name": "later", "mode": "queue", "subject": "fairlead.job.default.later"}

CONFIG = """
[agent.build]
permissions = [
  {{ action = "*", resource = "*", effect = "allow" }},
  {{ action = "*_stamp", resource = "*", effect = "ask" }},
]

[runner]
tools_wait_s = 1.0

[mcp.near]
command = "{python}"
args = ["-m", "fairlead_testing.tool_server", "{calls}"]
env = {{ PYTHONPATH = "{support}" }}

[mcp.far]
url = "http://127.0.0.1:{port}/mcp"
"""


# One of two workers answers, by chance: in a row of so many answers both are heard.
OFTEN = 12


@dataclass(frozen=True)
class Field:
    """A stack, and the file in which everything outside it notes its calls."""

    up: Stack
    calls: Path

    def noted(self, word: str) -> list[str]:
        lines = self.calls.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.split()[0] == word]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                await asyncio.sleep(0.05)

    async def offered(self, name: str) -> str:
        """The revision of a tool, once it is offered, by whichever of the workers is asked."""
        found: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < OFTEN:
                try:
                    found.append(await tool_revision(self.up, name))
                except (StopIteration, RuntimeError):
                    found.clear()
                    await asyncio.sleep(0.1)
        return found[-1]

    async def called(self, tool: str, **asked: object) -> list[Recorded]:
        """A session whose model calls a tool once; its whole log at the end."""
        return await settled(self.up, await self.calling(tool, **asked))

    async def reached(self, tool: str, **asked: object) -> list[Recorded]:
        """The same, of a call that reached its server: one that is starting again runs nothing."""
        async with asyncio.timeout(PATIENCE_S):
            while "was not run" in str(ending(log := await self.called(tool, **asked))):
                await asyncio.sleep(0.2)
        return log

    async def calling(self, tool: str, **asked: object) -> str:
        session = await self.up.session()
        await say(
            self.up, session, f"[[sim: tool={tool} args='{json.dumps(asked)}' ; answer=ok]] go"
        )
        return session


@contextmanager
def process(module: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else's."""
    started = subprocess.Popen(
        [sys.executable, "-m", f"fairlead_testing.{module}", *args],
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait(10)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def field() -> AsyncIterator[Field]:
    """One stack with two tool workers, a near and a far server."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as made:
        place, port = Path(made), free_port()
        config, calls = _configured(place, port)
        with process("tool_server", str(calls), str(port)):
            async with stack(place / "state", scale={"tools": 2}, config=config, sim=True) as up:
                yield Field(up, calls)


def _configured(place: Path, port: int) -> tuple[Path, Path]:
    place.chmod(0o755)
    calls, config = place / "calls", place / "fairlead.toml"
    calls.touch()
    config.write_text(CONFIG.format(python=sys.executable, calls=calls, support=SUPPORT, port=port))
    return config, calls


def ending(log: list[Recorded]) -> Any:  # noqa: ANN401
    """What the one call of a session came to: its structured value, or its error."""
    (end,) = [*of(log, "tool.succeeded"), *of(log, "tool.failed")]
    return end.structured if end.type == "tool.succeeded" else end.error.message


@pytest.mark.parametrize("server", ["near", "far"])
async def test_a_servers_tool_asks_like_any_other(field: Field, server: str) -> None:
    """J-40, K-14, K-15: not run before a person said so, once when one did, never when not."""
    await field.offered(f"{server}_stamp")
    sessions = [
        await field.calling(f"{server}_stamp", key=f"{server}-{word}")
        for word in ("once", "reject")
    ]
    for session, word in zip(sessions, ("once", "reject"), strict=True):
        (asked,) = of(await field.up.until(session, "permission.asked"), "permission.asked")
        assert asked.request.action == f"{server}_stamp"
        assert f"{server}-{word}" not in field.noted("stamp")
        path = f"/api/session/{session}/permission/{asked.request.id}/reply"
        body = {"reply": word, "message": "not this one"}
        assert (await field.up.http.post(path, json=body)).status_code == httpx.codes.NO_CONTENT

    once, refused = [await settled(field.up, session) for session in sessions]
    assert ending(once) == {"result": f"{server}-once"}
    assert (len(of(once, "permission.asked")), len(of(once, "tool.started"))) == (1, 1)
    assert "not this one" in ending(refused)
    assert not of(refused, "tool.started")
    assert [one for one in field.noted("stamp") if one.startswith(server)] == [f"{server}-once"]


async def test_a_servers_long_answer_is_bounded_and_kept_whole(field: Field) -> None:
    """J-24, J-26, J-30, J-40: both ends and a marker in the log, the complete text in the store."""
    await field.offered("near_huge")

    (event,) = of(await field.called("near_huge", megabytes=1), "tool.succeeded")

    (shown,) = event.content
    (path,) = event.output_paths
    assert len(shown.text.encode()) <= OUTPUT_BYTES_MAX
    assert path in shown.text
    kept = await field.up.http.get(f"/api/tool-output/{managed_id(path)}")
    assert kept.text == "x" * 1024 * 1024


async def test_servers_near_and_far_answer_a_session(field: Field) -> None:
    """J-40: and one that is killed in mid-call leaves the outcome unknown, and is not asked again."""
    await field.offered("near_add")
    await field.offered("far_add")

    near, far = await asyncio.gather(
        field.called("near_add", a=2, b=3), field.called("far_add", a=20, b=3)
    )
    assert (ending(near), ending(far)) == ({"result": 5}, {"result": 23})

    session = await field.calling("near_slow", key="s")
    await field.until(lambda: bool(field.noted("slow")))
    os.kill(int(field.noted("slow")[0].split()[1]), signal.SIGKILL)
    assert "its outcome is unknown" in ending(await settled(field.up, session))
    assert len(field.noted("slow")) == 1


async def test_a_server_that_floods_in_mid_call_fails_that_call_alone(field: Field) -> None:
    """J-40: settled with a reason, the session goes on, and the server is there again."""
    await field.offered("near_flood")

    log = await field.reached("near_flood", kind="noise")

    assert "its outcome is unknown" in ending(log)
    assert (len(field.noted("flood")), len(of(log, "step.ended"))) == (1, 2)
    assert ending(await field.reached("near_add", a=2, b=3)) == {"result": 5}


async def test_a_service_registers_a_tool_vanishes_and_returns_with_another(field: Field) -> None:
    """J-05, J-06: a call of the old one is stale; while nobody is there nothing runs."""
    url = field.up.up.nats
    with process("tool_service", url, str(field.calls), json.dumps(DOUBLE)):
        old = await field.offered("double")
        await asyncio.sleep(FRESH_S)
        assert ending(await field.called("double", n=4)) == {"n": 8}
        assert ending(await field.called("double", n="x")).startswith("Invalid tool input: n:")

    assert "It was not run" in ending(await field.called("double", n=4))
    changed = {**DOUBLE, "description": "doubles, and better"}
    with process("tool_service", url, str(field.calls), json.dumps(changed)):
        await field.until(lambda: len(field.noted("registered")) == 2)
        async with asyncio.timeout(PATIENCE_S):
            while await field.offered("double") == old:
                await asyncio.sleep(0.1)
        session = await _forced(field, "double", old)
        assert ending(await settled(field.up, session)) == "Stale tool call: double"
    assert len(field.noted("double")) == 1


async def test_a_queued_call_outlives_every_worker(field: Field) -> None:
    """J-09: nobody holds it; its settlement comes from outside, once, and the session goes on."""
    with process("tool_service", field.up.up.nats, str(field.calls), json.dumps(QUEUED)):
        await field.offered("later")
        # A runner remembers for a moment what was offered before.
        await asyncio.sleep(FRESH_S)
        session = await field.calling("later", n=4)
        await field.up.until(session, "tool.deferred")
        await field.until(lambda: bool(field.noted("job")))
        for pid in field.up.up.services["tools"]:
            os.kill(pid, signal.SIGKILL)
        task = orjson.loads(field.noted("job")[0])
        body = {key: task[key] for key in ("sessionID", "assistantMessageID", "callID")}
        answer = await _settled(field, {**body, "output": {"n": 8}})
        again = await field.up.ask("tool.settle", {**body, "output": {"n": 9}})

    assert "data" in answer
    assert again["error"]["_tag"] == "ConflictError"
    assert ending(await settled(field.up, session)) == {"n": 8}
    assert len(field.noted("job")) == 1


async def _settled(field: Field, body: dict[str, Any]) -> dict[str, Any]:
    """Tell the settlement until somebody is there to hear it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(Exception):
                return await field.up.ask("tool.settle", body)
            await asyncio.sleep(0.2)


async def _forced(field: Field, tool: str, revision: str) -> str:
    """A session whose runner is gone and left a call under a revision."""
    session, assistant = await field.up.session(), ids.message_id()
    prompt = admitted("go")
    owner = {"assistant_message_id": assistant, "call_id": "call_1"}
    await force(
        field.up,
        session,
        prompt,
        *crossed(prompt, assistant),
        StepStarted(assistant_message_id=assistant, agent="build", model=SIM),
        ToolInputStarted(**owner, name=tool),
        ToolCalled(
            **owner, tool=tool, input={"n": 1}, provider=Executor(), retry="once", revision=revision
        ),
    )
    at = Address("default", session)
    request = ToolRequest(session_id=session, assistant_message_id=assistant, call_id="call_1")
    await field.up.eventlog.work.put(
        subjects.tool(at, "default"), request.model_dump_json(by_alias=True).encode()
    )
    await field.up.until(session, "tool.failed")
    return session
