"""Many calls at once on a real server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_eventlog.jetstream import connect
from fairlead_eventlog.port import START
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.events import ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.record import Draft
from fairlead_schema.tool import Executor
from fairlead_schema.tooling import ToolRequest
from fairlead_service import ids
from fairlead_service.config import Tools
from fairlead_testing.nats import Server, free_port
from fairlead_tools.execute import Execute
from fairlead_tools.registry import Registry
from services.tools.tests.conftest import AT, BEFORE, Gate, standing, tool

pytestmark = pytest.mark.integration

CALLS = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path, free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


async def test_two_hundred_calls_at_once_run_and_settle_once_each(server: Server) -> None:
    """E-01, E-02: one session, two workers that share the queue, and a location with a limit."""
    await provision(server.url)
    gate, registry = Gate(), Registry()
    gate.opened.set()
    quick = tool(execute=gate, retry="once")
    registry.register(quick)
    called = tuple(
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=f"call_{number}",
            tool=quick.name,
            input={},
            provider=Executor(),
            retry="once",
            revision=quick.info.revision,
        )
        for number in range(CALLS)
    )
    async with connect(server.url, name="test") as eventlog:
        drafts = tuple(Draft(ids.event_id(), 1, event) for event in (*BEFORE, *called))
        await eventlog.log.append(AT, ids.commit_id(), drafts, after=START)
        for one in called:
            request = ToolRequest(
                session_id=AT.session_id, assistant_message_id="msg_a", call_id=one.call_id
            )
            body = request.model_dump_json(by_alias=True).encode()
            await eventlog.work.put(subjects.tool(AT, "default"), body, once=one.call_id)
        settings = Tools(location_concurrency=16)
        for worker in ("wkr_a", "wkr_b"):
            await eventlog.liveness.answer(worker)
        first = Execute("wkr_a", eventlog, registry, settings)
        second = Execute("wkr_b", eventlog, registry, settings)
        async with standing(first), standing(second), asyncio.timeout(60):
            settled: list[str] = []
            while len(settled) < CALLS:
                await asyncio.sleep(0.1)
                page = await eventlog.log.read(AT, after=START, limit=5000)
                events = [one.event for stored in page.commits for one in stored.commit.events]
                settled = [e.call_id for e in events if isinstance(e, ToolSucceeded | ToolFailed)]

    assert sorted(settled) == sorted(one.call_id for one in called)
    assert len(gate.runs) == CALLS
