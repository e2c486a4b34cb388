"""Many calls at once on a real server."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START, StoredCommit
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.events import ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.record import Draft
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ToolRequest
from fairlead_service import ids
from fairlead_service.config.sections import ToolsConfig
from fairlead_testing.nats import Server
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.registry.registry import Registry
from services.tools.tests.conftest import AT, BEFORE, Gate, run_worker, tool

pytestmark = pytest.mark.integration

CALLS = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    nats_server = Server(tmp_path, free_port())
    nats_server.start()
    try:
        yield nats_server
    finally:
        nats_server.kill()


async def test_two_hundred_calls_at_once_run_and_settle_once_each(server: Server) -> None:
    """E-01, E-02: one session, and a location with a limit."""
    await provision(server.address)
    gate, registry = Gate(), Registry()
    gate.opened.set()
    quick = tool(execute=gate, retry="once")
    registry.register(quick)
    calls = tuple(
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
    async with connect(server.address, name="test", timeout_s=30) as eventlog:
        drafts = tuple(Draft(ids.event_id(), 1, event) for event in (*BEFORE, *calls))
        await eventlog.log.append(AT, ids.commit_id(), drafts, after=START)
        for call in calls:
            request = ToolRequest(
                session_id=AT.session_id, assistant_message_id="msg_a", call_id=call.call_id
            )
            body = request.model_dump_json(by_alias=True).encode()
            await eventlog.work.put(subjects.tool(AT, "default"), body, once=call.call_id)
        settings = ToolsConfig(location_concurrency=16)
        await eventlog.liveness.start_answering("wkr_a")
        worker = ToolWorker("wkr_a", eventlog, registry, settings)
        call_ids: list[str] = []
        tail = cast("AsyncGenerator[StoredCommit, None]", eventlog.log.tail(AT, after=0))
        async with run_worker(worker), asyncio.timeout(90), aclosing(tail):
            async for stored in tail:
                events = (entry.event for entry in stored.commit.events)
                call_ids += (e.call_id for e in events if isinstance(e, ToolSucceeded | ToolFailed))
                if len(call_ids) >= CALLS:
                    break

    assert sorted(call_ids) == sorted(call.call_id for call in calls)
    assert len(gate.runs) == CALLS
