"""Tool workers as processes on a real server: killed, overtaken, interrupted and stopped."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    ToolCalled,
    ToolFailed,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ListTools, ToolCatalog, ToolInfo, ToolRequest
from fairlead_service import ids
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_testing.nats import Server
from services.tools.tests.conftest import BEFORE

pytestmark = pytest.mark.integration

AT = Address("default", "ses_1")
ASK = ListTools(location=LocationRef(directory="/w")).model_dump_json(by_alias=True).encode()
WAIT_S = 40.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    nats_server = Server(tmp_path, free_port())
    nats_server.start()
    try:
        yield nats_server
    finally:
        nats_server.kill()


@pytest.fixture
async def eventlog(server: Server) -> AsyncIterator[EventLog]:
    await provision(server.address)
    async with connect(server.address, name="test") as log:
        await write(log, *BEFORE)
        yield log


@contextmanager
def worker(server: Server, file: Path, grace_s: float = 20.0) -> Iterator[subprocess.Popen[bytes]]:
    env = {
        **os.environ,
        "FAIRLEAD_NATS_URL": server.url,
        # The sessions of these tests are at a directory that is not there.
        "FAIRLEAD_LOCATION_DEFAULT": "/",
        "FAIRLEAD_HEALTH_PORT": str(free_port()),
        "FAIRLEAD_TOOLS_PROBES": "true",
        "FAIRLEAD_TOOLS_PROBE_FILE": str(file),
        "FAIRLEAD_TOOLS_GRACE_S": str(grace_s),
    }
    process = subprocess.Popen([sys.executable, "-m", "fairlead_tools"], env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


async def write(eventlog: EventLog, *events: SessionEvent) -> None:
    """Append events; try again after each conflict with a worker."""
    drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)
    async with asyncio.timeout(WAIT_S):
        while True:
            head = await eventlog.log.head(AT)
            with suppress(AppendConflict):
                await eventlog.log.append(AT, ids.commit_id(), drafts, after=head)
                return


async def catalog(eventlog: EventLog) -> dict[str, ToolInfo]:
    """The tools of the pool, as soon as a worker answers."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                body = await eventlog.requests.request(
                    subjects.tool_catalog("default"), ASK, timeout_s=2
                )
            except Exception:  # noqa: BLE001 - not there yet
                await asyncio.sleep(0.1)
                continue
            answer = ToolCatalog.model_validate_json(body.removeprefix(b'{"data":')[:-1])
            return {info.name: info for info in answer.tools}


async def call(eventlog: EventLog, info: ToolInfo, delay_ms: int) -> None:
    event = ToolCalled(
        assistant_message_id="msg_a",
        call_id=info.name,
        tool=info.name,
        input={"key": "k", "delay_ms": delay_ms},
        provider=Executor(),
        retry=info.retry,
        revision=info.revision,
    )
    await write(eventlog, event)
    request = ToolRequest(session_id="ses_1", assistant_message_id="msg_a", call_id=info.name)
    body = request.model_dump_json(by_alias=True).encode()
    await eventlog.work.put(subjects.tool(AT, "default"), body, once=info.name)


async def wait_for_settlements(eventlog: EventLog, count: int) -> dict[str, str]:
    """Wait for so many settlements. No call may have two."""
    async with asyncio.timeout(WAIT_S):
        while True:
            page = await eventlog.log.read(AT, after=START)
            events = [entry.event for stored in page.commits for entry in stored.commit.events]
            settlements = [
                event for event in events if isinstance(event, ToolSucceeded | ToolFailed)
            ]
            if len(settlements) >= count:
                assert len(settlements) == len({event.call_id for event in settlements}) == count
                return {event.call_id: _describe(event) for event in settlements}
            await asyncio.sleep(0.05)


def _describe(event: ToolSucceeded | ToolFailed) -> str:
    return str(event.structured) if isinstance(event, ToolSucceeded) else event.error.message


async def wait_for_runs(file: Path, count: int) -> list[str]:
    async with asyncio.timeout(WAIT_S):
        while True:
            text = await asyncio.to_thread(lambda: file.read_text() if file.exists() else "")
            names = [line.split()[0] for line in text.splitlines() if line.endswith("begun")]
            if len(names) >= count:
                return sorted(names)
            await asyncio.sleep(0.02)


async def test_a_killed_workers_calls_are_taken_over_and_once_is_not_run_again(
    server: Server, eventlog: EventLog, tmp_path: Path
) -> None:
    """E-20: after SIGKILL the deadline of the request passes, and another worker gets it."""
    file = tmp_path / "runs"
    with worker(server, file) as first:
        tools = await catalog(eventlog)
        for name in ("probe_pure", "probe_idempotent", "probe_once"):
            await call(eventlog, tools[name], delay_ms=2_000)
        await wait_for_runs(file, 3)
        first.kill()
        first.wait(10)
        with worker(server, file):
            outcomes = await wait_for_settlements(eventlog, 3)

    assert outcomes == {
        "probe_pure": "{'key': 'k', 'runs': 2}",
        "probe_idempotent": "{'key': 'k', 'runs': 2}",
        "probe_once": INTERRUPTED_TOOL,
    }
    assert await wait_for_runs(file, 5) == [
        "probe_idempotent",
        "probe_idempotent",
        "probe_once",
        "probe_pure",
        "probe_pure",
    ]


async def test_an_interrupt_and_a_departure_settle_or_hand_over(
    server: Server, eventlog: EventLog, tmp_path: Path
) -> None:
    """E-16, E-20: SIGTERM puts back what may run again and settles `once`."""
    file = tmp_path / "runs"
    with worker(server, file, grace_s=0.1) as first:
        tools = await catalog(eventlog)
        await call(eventlog, tools["probe_pure"], delay_ms=3_000)
        await call(eventlog, tools["probe_once"], delay_ms=3_000)
        await wait_for_runs(file, 2)
        with worker(server, file):
            first.send_signal(signal.SIGTERM)
            await asyncio.to_thread(first.wait, 20)
            outcomes = await wait_for_settlements(eventlog, 2)
            await call(eventlog, tools["probe_slow"], delay_ms=30_000)
            await wait_for_runs(file, 4)
            await write(eventlog, InterruptRequested())
            last = await wait_for_settlements(eventlog, 3)

    assert outcomes == {"probe_pure": "{'key': 'k', 'runs': 2}", "probe_once": INTERRUPTED_TOOL}
    assert last["probe_slow"] == INTERRUPTED_TOOL
