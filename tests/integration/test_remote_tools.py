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
from fairlead_testing.session_driver import (
    SIM,
    boundary_events,
    events_of,
    force,
    new_admission,
    say,
    tool_revision,
    wait_until_settled,
)
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

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
QUEUED = {**DOUBLE, "name": "later", "mode": "queue", "subject": "fairlead.job.default.local.later"}

CONFIG = """
[agent.build]
permissions = [
  {{ action = "*", resource = "*", effect = "allow" }},
  {{ action = "mcp:*", resource = "stamp", effect = "ask" }},
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

    @property
    def service_arguments(self) -> tuple[str, str, str]:
        """How a service of the default tenant connects, and where it notes its calls."""
        local = self.up.up.local_client
        return local.url, str(local.nkey_file), str(self.calls)

    def notes_of(self, word: str) -> list[str]:
        lines = self.calls.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.split()[0] == word]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not true():
                await asyncio.sleep(0.05)

    async def wait_until_offered(self, name: str) -> str:
        """The revision of a tool, once it is offered, by whichever of the workers is asked."""
        revisions: list[str] = []
        async with asyncio.timeout(TIMEOUT_S):
            while len(revisions) < OFTEN:
                try:
                    revisions.append(await tool_revision(self.up, name))
                except (StopIteration, RuntimeError):
                    revisions.clear()
                    await asyncio.sleep(0.1)
        return revisions[-1]

    async def run_call(self, tool: str, **arguments: object) -> list[Recorded]:
        """A session whose model calls a tool once; its whole log at the end."""
        return await wait_until_settled(self.up, await self.begin_call(tool, **arguments))

    async def run_until_reached(self, tool: str, **arguments: object) -> list[Recorded]:
        """The same, of a call that reached its server: one that is starting again runs nothing."""
        async with asyncio.timeout(TIMEOUT_S):
            while "was not run" in str(outcome(log := await self.run_call(tool, **arguments))):
                await asyncio.sleep(0.2)
        return log

    async def begin_call(self, tool: str, **arguments: object) -> str:
        session = await self.up.session()
        await say(
            self.up, session, f"[[sim: tool={tool} args='{json.dumps(arguments)}' ; answer=ok]] go"
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
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place, port = Path(directory), free_port()
        config, calls = _write_config(place, port)
        with process("tool_server", str(calls), str(port)):
            async with stack(place / "state", scale={"tools": 2}, config=config, sim=True) as up:
                yield Field(up, calls)


def _write_config(place: Path, port: int) -> tuple[Path, Path]:
    place.chmod(0o755)
    calls, config = place / "calls", place / "fairlead.toml"
    calls.touch()
    config.write_text(CONFIG.format(python=sys.executable, calls=calls, support=SUPPORT, port=port))
    return config, calls


def outcome(log: list[Recorded]) -> Any:  # noqa: ANN401
    """What the one call of a session came to: its structured value, or its error."""
    (end,) = [*events_of(log, "tool.succeeded"), *events_of(log, "tool.failed")]
    return end.structured if end.type == "tool.succeeded" else end.error.message


@pytest.mark.parametrize("server", ["near", "far"])
async def test_a_servers_tool_asks_like_any_other(field: Field, server: str) -> None:
    """J-40, K-14, K-15: not run before a person said so, once when one did, never when not."""
    await field.wait_until_offered(f"{server}_stamp")
    sessions = [
        await field.begin_call(f"{server}_stamp", key=f"{server}-{word}")
        for word in ("once", "reject")
    ]
    for session, word in zip(sessions, ("once", "reject"), strict=True):
        (event,) = events_of(await field.up.until(session, "permission.asked"), "permission.asked")
        assert (event.request.action, event.request.resources) == (f"mcp:{server}", ("stamp",))
        assert f"{server}-{word}" not in field.notes_of("stamp")
        path = f"/api/session/{session}/permission/{event.request.id}/reply"
        body = {"reply": word, "message": "not this one"}
        assert (await field.up.http.post(path, json=body)).status_code == httpx.codes.NO_CONTENT

    once, refused = [await wait_until_settled(field.up, session) for session in sessions]
    assert outcome(once) == {"result": f"{server}-once"}
    assert (len(events_of(once, "permission.asked")), len(events_of(once, "tool.started"))) == (
        1,
        1,
    )
    assert "not this one" in outcome(refused)
    assert not events_of(refused, "tool.started")
    assert [note for note in field.notes_of("stamp") if note.startswith(server)] == [
        f"{server}-once"
    ]


async def test_a_servers_long_answer_is_bounded_and_kept_whole(field: Field) -> None:
    """J-24, J-26, J-30, J-40: both ends and a marker in the log, the complete text in the store."""
    await field.wait_until_offered("near_huge")

    (event,) = events_of(await field.run_call("near_huge", megabytes=1), "tool.succeeded")

    (shown,) = event.content
    (path,) = event.output_paths
    assert len(shown.text.encode()) <= OUTPUT_BYTES_MAX
    assert path in shown.text
    stored = await field.up.http.get(f"/api/tool-output/{managed_id(path)}")
    assert stored.text == "x" * 1024 * 1024


async def test_servers_near_and_far_answer_a_session(field: Field) -> None:
    """J-40: and one that is killed in mid-call leaves the outcome unknown, and is not asked again."""
    await field.wait_until_offered("near_add")
    await field.wait_until_offered("far_add")

    near, far = await asyncio.gather(
        field.run_call("near_add", a=2, b=3), field.run_call("far_add", a=20, b=3)
    )
    assert (outcome(near), outcome(far)) == ({"result": 5}, {"result": 23})

    session = await field.begin_call("near_slow", key="s")
    await field.until(lambda: bool(field.notes_of("slow")))
    os.kill(int(field.notes_of("slow")[0].split()[1]), signal.SIGKILL)
    assert "its outcome is unknown" in outcome(await wait_until_settled(field.up, session))
    assert len(field.notes_of("slow")) == 1


async def test_a_server_that_floods_in_mid_call_fails_that_call_alone(field: Field) -> None:
    """J-40: settled with a reason, the session goes on, and the server is there again."""
    await field.wait_until_offered("near_flood")

    log = await field.run_until_reached("near_flood", kind="noise")

    assert "its outcome is unknown" in outcome(log)
    assert (len(field.notes_of("flood")), len(events_of(log, "step.ended"))) == (1, 2)
    assert outcome(await field.run_until_reached("near_add", a=2, b=3)) == {"result": 5}


async def test_a_service_registers_a_tool_vanishes_and_returns_with_another(field: Field) -> None:
    """J-05, J-06: a call of the old one is stale; while nobody is there nothing runs."""
    client = field.service_arguments
    with process("tool_service", *client, json.dumps(DOUBLE)):
        old = await field.wait_until_offered("double")
        assert outcome(await field.run_call("double", n=4)) == {"n": 8}
        assert outcome(await field.run_call("double", n="x")).startswith("Invalid tool input: n:")

    assert "It was not run" in outcome(await field.run_call("double", n=4))
    changed = {**DOUBLE, "description": "doubles, and better"}
    with process("tool_service", *client, json.dumps(changed)):
        await field.until(lambda: len(field.notes_of("registered")) == 2)
        async with asyncio.timeout(TIMEOUT_S):
            while await field.wait_until_offered("double") == old:
                await asyncio.sleep(0.1)
        session = await _abandon_call(field, "double", old)
        assert outcome(await wait_until_settled(field.up, session)) == "Stale tool call: double"
    assert len(field.notes_of("double")) == 1


async def test_a_tool_works_from_the_answer_to_its_registration_on(field: Field) -> None:
    """D5, J-06: each change is known to every worker and runner, so no turn after it is stale."""
    twice = {**DOUBLE, "name": "twice", "subject": "fairlead.app.default.twice"}
    with process("tool_service", *field.service_arguments, json.dumps(twice)):
        await field.wait_until_offered("twice")
        results = []
        for number in range(8):
            changed = {**twice, "description": f"doubles, for the {number}th time"}
            assert "data" in await field.up.ask("tool.register", changed)
            results.append(outcome(await field.run_call("twice", n=number)))

    assert results == [{"n": number * 2} for number in range(8)]


async def test_a_queued_call_outlives_every_worker(field: Field) -> None:
    """J-09: nobody holds it; its settlement comes from outside, once, and the session goes on."""
    with process("tool_service", *field.service_arguments, json.dumps(QUEUED)):
        await field.wait_until_offered("later")
        session = await field.begin_call("later", n=4)
        await field.up.until(session, "tool.deferred")
        await field.until(lambda: bool(field.notes_of("job")))
        for pid in field.up.up.services["tools"]:
            os.kill(pid, signal.SIGKILL)
        task = orjson.loads(field.notes_of("job")[0])
        body = {key: task[key] for key in ("sessionID", "assistantMessageID", "callID")}
        answer = await _settle(field, {**body, "output": {"n": 8}})
        again = await field.up.ask("tool.settle", {**body, "output": {"n": 9}})

    assert "data" in answer
    assert again["error"]["_tag"] == "ConflictError"
    assert outcome(await wait_until_settled(field.up, session)) == {"n": 8}
    assert len(field.notes_of("job")) == 1


async def _settle(field: Field, body: dict[str, Any]) -> dict[str, Any]:
    """Tell the settlement until somebody is there to hear it."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with suppress(Exception):
                return await field.up.ask("tool.settle", body)
            await asyncio.sleep(0.2)


async def _abandon_call(field: Field, tool: str, revision: str) -> str:
    """A session whose runner is gone and left a call under a revision."""
    session, assistant = await field.up.session(), ids.message_id()
    prompt = new_admission("go")
    owner = {"assistant_message_id": assistant, "call_id": "call_1"}
    await force(
        field.up,
        session,
        prompt,
        *boundary_events(prompt, assistant),
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
