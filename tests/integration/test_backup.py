"""A backup of a running stack under load comes back into an empty one: nothing acknowledged before it is missing."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack

pytestmark = pytest.mark.integration


@dataclass
class Load:
    """Prompts that were acknowledged, and when."""

    acknowledged: list[tuple[float, str, str]] = field(default_factory=list)
    is_over: bool = False

    async def wait_for(self, count: int) -> None:
        """Wait for so many prompts."""
        async with asyncio.timeout(TIMEOUT_S):
            while len(self.acknowledged) < count:
                assert not self.is_over, "the load failed"
                await asyncio.sleep(0.01)

    def before(self, moment: float) -> list[tuple[str, str]]:
        """The sessions and messages that were acknowledged before a moment."""
        return [(session, message) for at, session, message in self.acknowledged if at < moment]


@asynccontextmanager
async def run_load(up: Stack) -> AsyncIterator[Load]:
    """Sessions and prompts, one after another, over HTTP and published to NATS in turn."""
    load = Load()
    working = asyncio.create_task(_work(up, load))
    working.add_done_callback(lambda _: setattr(load, "is_over", True))
    try:
        yield load
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(up: Stack, load: Load) -> None:
    number = 0
    while True:
        session = await up.session()
        for _ in range(3):
            number += 1
            message = f"msg_load{number}"
            body = {"id": message, "prompt": {"text": f"hello {number}"}}
            if number % 2:
                answer = await up.http.post(f"/api/session/{session}/prompt", json=body)
                assert answer.is_success, answer.text
            else:
                await publish(up, session, body)
            load.acknowledged.append((time.time(), session, message))


async def publish(up: Stack, session: str, body: dict[str, Any]) -> None:
    """Publish a prompt to the durable intake, and wait until the stream has it."""
    await up.eventlog.work.put(
        subjects.prompt(Address(DEFAULT_TENANT, session)), json.dumps(body).encode()
    )


async def run_command(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Run `fairlead` as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", **variables},
    )
    async with asyncio.timeout(TIMEOUT_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def admitted(up: Stack, session: str) -> set[str]:
    """The messages that the log has of a session."""
    events: list[Any] = [recorded.event for recorded in await up.events(session)]
    return {event.message_id for event in events if event.type == "prompt.admitted"}


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ({"solo": True}, 1),
        pytest.param({"nats_nodes": 3, "scale": {"runner": 2}}, 3, marks=pytest.mark.slow),
    ],
    ids=["solo", "cluster"],
)
async def test_what_was_acknowledged_before_a_backup_is_there_after_a_restore(
    tmp_path: Path, options: dict[str, Any], nodes: int
) -> None:
    """Backup under load, restore elsewhere: nothing is missing, cursors are void, work goes on."""
    async with stack(tmp_path / "one", sim=True, **options) as up:
        first = await up.session()
        await up.ask("session.prompt", {"sessionID": first, "prompt": {"text": "hello"}})
        await up.wait_until_rested(first)
        frame = await first_frame(up, first)
        async with run_load(up) as load:
            await load.wait_for(12)
            began = time.time()
            code, out, err = await run_command(
                *("backup", str(tmp_path / "backup"), "--json", "--state", str(tmp_path / "one"))
            )
            assert code == 0, err
        await check_notes(up, tmp_path, began)
        promised = load.before(began)
        assert len(load.acknowledged) > len(promised), "the load went on during the backup"
    assert json.loads(out)["commits"] > 0

    code, out, err = await run_command(
        *("restore", str(tmp_path / "backup"), "--json"),
        *("--state", str(tmp_path / "two"), "--replicas", str(nodes)),
    )
    assert code == 0, err
    incarnation = json.loads(out)["incarnation"]
    assert incarnation not in {None, frame["log"]}

    async with stack(tmp_path / "two", sim=True, **options) as up:
        await check_promised(up, promised)
        answer = await up.http.get(
            f"/api/session/{first}/event", params={"after": frame["id"], "log": frame["log"]}
        )
        assert answer.json()["_tag"] == "CursorExpiredError", answer.text
        answer = await up.http.get(f"/api/session/{first}/event", params={"after": 1000})
        assert answer.json()["_tag"] == "InvalidCursorError", answer.text
        await up.ask("session.prompt", {"sessionID": first, "prompt": {"text": "again"}})
        events = await up.wait_until_rested(first)
        check_log(events)
        assert event_types(events).count("prompt.promoted") == 2


async def check_notes(up: Stack, place: Path, began: float) -> None:
    """The deployment knows of the complete backup and of a failed one: alerts count on it."""
    command = ("backup", str(place / "backup"), "--state", str(place / "one"))
    code, _, reason = await run_command(*command)
    assert (code, "holds a backup" in reason) == (1, True)
    complete, failed = await up.eventlog.backups.read()
    assert complete is not None
    assert failed is not None
    assert began <= complete.began < failed.began
    assert "holds a backup" in (failed.failure or "")


async def check_promised(up: Stack, promised: list[tuple[str, str]]) -> None:
    """Every prompt is in the log once, its session came to rest, and the list has it."""
    by_session: dict[str, set[str]] = {}
    for session, message in promised:
        by_session.setdefault(session, set()).add(message)
    for session, messages in by_session.items():
        await wait_until_admitted(up, session, messages)
        check_log(await up.wait_until_rested(session))
    await wait_until_listed(up, set(by_session))


async def wait_until_listed(up: Stack, sessions: set[str]) -> None:
    """The projector makes the rows again."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            listed = await up.http.get("/api/session", params={"limit": 200})
            if sessions <= {row["id"] for row in listed.json()["data"]}:
                return
            await asyncio.sleep(0.1)


async def wait_until_admitted(up: Stack, session: str, messages: set[str]) -> None:
    """Prompts of the durable intake may be admitted only after the restore."""
    async with asyncio.timeout(TIMEOUT_S):
        while not messages <= await admitted(up, session):
            await asyncio.sleep(0.05)


async def first_frame(up: Stack, session: str) -> dict[str, str]:
    """The id of the first event of a stream, and the incarnation that it names."""
    async with up.http.stream("GET", f"/api/session/{session}/event") as response:
        assert response.is_success
        log = response.headers["fairlead-log"]
        async for line in response.aiter_lines():
            if line.startswith("id:"):
                return {"id": line.removeprefix("id:").strip(), "log": log}
    raise AssertionError("the stream ended")
