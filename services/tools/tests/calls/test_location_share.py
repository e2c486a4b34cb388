"""A busy location gets its share of a worker's slots and no more; on the twin."""

import asyncio
from dataclasses import replace

from fairlead_eventlog.memory.work_queues import MemoryQueue
from fairlead_eventlog.ports import START
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.events import SessionCreated, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor
from fairlead_schema.tools.request import ToolRequest
from fairlead_tools.location_shares import LocationShares
from fairlead_tools.registry.tool import CallContext, Tool
from services.tools.tests.conftest import (
    AT,
    BEFORE,
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    run_worker,
    tool,
    wait_until,
)


async def call_elsewhere(
    harness: Harness, called_tool: Tool, session_id: str, directory: str
) -> None:
    """A session at another location, with one call."""
    at = Address("default", session_id)
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory=directory))
    call = ToolCalled(
        assistant_message_id="msg_a",
        call_id="call_1",
        tool=called_tool.name,
        input={},
        provider=Executor(),
        retry="once",
        revision=called_tool.info.revision,
    )
    await harness.write(created, *BEFORE[1:], call, at=at)
    request = ToolRequest(session_id=session_id, assistant_message_id="msg_a", call_id="call_1")
    body = request.model_dump_json(by_alias=True).encode()
    await harness.eventlog.work.put(subjects.tool(at, "default"), body)


async def test_one_location_does_not_take_every_slot(harness: Harness) -> None:
    """E-02: its further calls wait in the queue without a slot, and calls elsewhere run."""
    harness.settings = harness.settings.model_copy(update={"location_concurrency": 3})
    gate, ran = Gate(), list[str]()

    async def quick(request: EchoInput, context: CallContext) -> EchoOutput:
        ran.append(context.location.directory)
        return EchoOutput(said=request.key)

    slow, other = tool("slow", execute=gate), tool("quick", execute=quick)
    for new_tool in (slow, other):
        harness.registry.register(new_tool)
    for number in range(20):
        await harness.call(slow, id_=f"call_{number}")
    for number in range(5):
        await call_elsewhere(harness, other, f"ses_other{number}", f"/elsewhere/{number}")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(ran) == 5 and len(gate.runs) >= 3)
        assert len(gate.runs) == 3
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(gate.runs) == 20
    assert len(await harness.settlements()) == 20


async def test_sessions_of_one_location_share_its_share(harness: Harness) -> None:
    """E-02: the limit is the location's, not the session's."""
    harness.settings = harness.settings.model_copy(update={"location_concurrency": 2})
    gate = Gate()
    slow = replace(tool("slow"), execute=gate)
    harness.registry.register(slow)
    for number in range(6):
        await call_elsewhere(harness, slow, f"ses_{number}x", "/shared")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 2)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(gate.runs) == 6


async def test_two_hundred_calls_at_once_are_settled_once_each(harness: Harness) -> None:
    """E-01, E-02: some calls wait for the share of their location; each runs once."""
    gate = Gate()
    gate.opened.set()
    quick = tool(execute=gate)
    harness.registry.register(quick)
    for number in range(200):
        await harness.call(quick, id_=f"call_{number}", key=str(number))

    await harness.serve_all()

    page = await harness.log.read(AT, after=START, limit=5000)
    events = [entry.event for stored in page.commits for entry in stored.commit.events]
    call_ids = [event.call_id for event in events if isinstance(event, ToolSucceeded | ToolFailed)]
    assert sorted(call_ids) == sorted(f"call_{number}" for number in range(200))
    assert len(gate.runs) == 200


async def put_delivered(harness: Harness, call_id: str) -> None:
    """Another request for a call, until a worker has it."""
    request = await harness.put(call_id)
    await wait_until(lambda: request.deliveries == 1)


async def test_a_second_request_for_a_running_call_takes_no_slot(harness: Harness) -> None:
    """The request waits for its call, and another call runs meanwhile."""
    harness.settings = harness.settings.model_copy(update={"concurrency": 2})
    gate, other = Gate(), Gate()
    other.opened.set()
    slow, quick = tool("slow", execute=gate), tool("quick", execute=other)
    harness.registry.register(slow)
    harness.registry.register(quick)
    request = await harness.call(slow)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        for _ in range(3):
            request.expire()
            await put_delivered(harness, "call_1")
        await harness.call(quick, id_="call_2")
        await wait_until(lambda: len(other.runs) == 1)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert (len(gate.runs), len(other.runs)) == (1, 1)


async def test_a_worker_never_runs_more_calls_than_it_has_slots(harness: Harness) -> None:
    """Redelivered requests, and second requests for a running call, free no slot twice."""
    harness.settings = harness.settings.model_copy(update={"concurrency": 2})
    gate = Gate()
    slow = tool("slow", execute=gate)
    harness.registry.register(slow)
    first = await harness.call(slow, id_="call_0")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        for _ in range(2):
            first.expire()
            await put_delivered(harness, "call_0")
        for number in range(1, 5):
            await harness.call(slow, id_=f"call_{number}")
        await wait_until(lambda: len(gate.runs) == 2)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(gate.runs) == 2
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(gate.runs) == 5


async def test_requests_of_a_crowded_location_come_less_and_less_often(harness: Harness) -> None:
    """A19: ten thousand of them asked for 40,000 deliveries a second. A call that ends recalls one."""
    harness.settings = harness.settings.model_copy(update={"location_concurrency": 1})
    gate = Gate()
    slow = tool("slow", execute=gate)
    harness.registry.register(slow)
    for number in range(3):
        await harness.call(slow, id_=f"call_{number}")

    async with run_worker(harness.worker()):
        await wait_until(lambda: max(job.deliveries for job in harness.jobs) > 8)
        delays = max((job.delays for job in harness.jobs), key=len)[:8]
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert len(gate.runs) == 3


async def test_a_call_that_ends_recalls_the_request_that_waits_longest() -> None:
    shares, queue = LocationShares(1), MemoryQueue()
    for name in ("running", "first", "second"):
        queue.add(name, b"")
    taken = queue.take(Slots(3))
    _running, first, second = [await anext(taken) for _ in range(3)]
    assert shares.enter(None)
    for job in (first, second):
        assert not shares.enter(None)
        shares.put_back(None, job)

    await shares.leave(None)

    assert [message.is_queued for message in queue.messages] == [False, True, False]
    assert shares.enter(None)
