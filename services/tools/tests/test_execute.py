"""A call from its request to its settlement: started in the log, run, checked, settled, woken."""

import asyncio

import pytest
from prometheus_client import REGISTRY

from fairlead_eventlog.ports import CommitPage, Head
from fairlead_schema import subjects
from fairlead_schema.events import ToolStarted, ToolSucceeded
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import (
    AT,
    Asked,
    Gate,
    Told,
    World,
    echo,
    standing,
    tool,
    until,
)


async def test_a_call_runs_after_its_start_is_in_the_log(world: World) -> None:
    """E-01, E-27: started durably, then run with what it is about, settled, woken, acknowledged."""
    seen: list[tuple[list[str], CallContext]] = []

    async def run(asked: Asked, context: CallContext) -> Told:
        seen.append((await world.starts(), context))
        return await echo(asked, context)

    running = tool(execute=run)
    world.registry.register(running)
    await world.call(running, key="hello")

    assert await world.served() == ["{'said': 'hello'}"]

    ((starts, context),) = seen
    assert starts == ["wkr_a"]
    assert (context.at, context.agent, context.location.directory) == (AT, "build", "/w")
    assert context.key == "ses_1:msg_a:call_1"
    assert [type(event) for event in await world.events()][-2:] == [ToolStarted, ToolSucceeded]
    assert [job.subject for job in world.wakes] == [subjects.wake(AT)]


async def test_a_request_that_comes_again_after_the_settlement_runs_nothing(world: World) -> None:
    """E-20: the dead worker may not have woken the session, so a redelivery wakes it."""
    running = tool()
    world.registry.register(running)
    await world.call(running)
    await world.served()
    (wake,) = world.wakes
    await wake.ack()

    job = await world.put()
    job.deliveries = 1

    assert await world.served("wkr_b") == ["{'said': 'k'}"]
    assert await world.starts() == ["wkr_a"]
    assert len(world.wakes) == 1


async def test_a_request_for_a_call_that_the_log_does_not_know_is_dropped(world: World) -> None:
    """E-01: a fenced runner's request starts nothing."""
    await world.put("call_9")

    assert await world.served() == []
    assert await world.starts() == []


async def test_a_request_is_not_dropped_because_a_read_lags_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01: a replica that does not know the call yet proves nothing."""
    world.briefed = False
    running = tool()
    world.registry.register(running)
    job = await world.call(running)
    read, lagging = world.log.read, [True, True]

    async def lag(at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        page = await read(at, after=after, limit=limit)
        known = page.commits[:1] if not after.position else ()
        return CommitPage(known, more=False) if lagging and lagging.pop() else page

    monkeypatch.setattr(world.log, "read", lag)

    assert await world.served() == ["{'said': 'k'}"]
    assert job.deliveries == 2


async def test_a_name_that_was_never_advertised_is_unknown(world: World) -> None:
    """E-06, J-10: settled without a start, also when somebody registered it since."""
    world.registry.register(tool("late"))
    await world.call("missing")
    await world.call("late", id_="call_2")

    assert sorted(await world.served()) == ["Unknown tool: late", "Unknown tool: missing"]
    assert await world.starts() == []
    assert world.wakes


async def test_another_registration_than_the_advertised_one_is_stale(world: World) -> None:
    """J-05, J-06: removed, or replaced; only for that name."""
    removed, replaced, kept = tool("removed"), tool("replaced"), tool("kept")
    registration = world.registry.register(removed)
    for one in (replaced, kept):
        world.registry.register(one)
    await world.call(removed, id_="call_1")
    await world.call(replaced, id_="call_2")
    await world.call(kept, id_="call_3")
    world.registry.remove(registration)
    world.registry.register(tool("replaced", description="other"))

    assert sorted(await world.served()) == [
        "Stale tool call: removed",
        "Stale tool call: replaced",
        "{'said': 'k'}",
    ]


async def test_a_running_call_is_unaffected_by_later_registrations(world: World) -> None:
    """J-09: what has begun goes on as it began."""
    gate = Gate()
    running = tool(execute=gate)
    registration = world.registry.register(running)
    await world.call(running)

    async with standing(world.worker()):
        await until(lambda: bool(gate.runs))
        world.registry.remove(registration)
        gate.opened.set()
        await until(lambda: not world.jobs)

    assert await world.settlements() == ["{'said': 'k'}"]


async def test_another_writer_between_decision_and_commit_changes_nothing(world: World) -> None:
    """E-01, E-20: on a conflict the worker reads on and decides again, at both commits."""
    running = tool()
    world.registry.register(running)
    await world.call(running)
    overtaken: list[str] = []

    async def overtake(drafts: tuple[Draft, ...]) -> None:
        kind = drafts[0].event.type
        if kind not in overtaken:
            overtaken.append(kind)
            await world.write(
                ToolStarted(
                    assistant_message_id="msg_z", call_id="other", worker="wkr_z", generation=1
                )
            )

    world.log.before = overtake

    assert await world.served() == ["{'said': 'k'}"]
    assert overtaken == ["tool.started", "tool.succeeded"]
    assert (await world.starts()).count("wkr_a") == 1


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'{"sessionID": "ses_2"}'])
async def test_poison_is_buried_and_acknowledged(world: World, payload: bytes) -> None:
    """J-17: what is no request never comes again; others are served."""
    running = tool()
    world.registry.register(running)
    await world.eventlog.work.put(subjects.tool(AT, "default"), payload)
    await world.call(running)

    assert await world.served() == ["{'said': 'k'}"]
    ((source, subject, body, reason),) = world.buried
    assert (source, subject, body) == ("tool", subjects.tool(AT, "default"), payload)
    assert reason


async def test_no_more_calls_run_at_a_time_than_the_worker_may_hold(world: World) -> None:
    """E-02: eager and parallel, but bounded; the gauge shows how many."""
    gate = Gate()
    running = tool(execute=gate)
    world.registry.register(running)
    for number in range(20):
        await world.call(running, id_=f"call_{number}")

    async with standing(world.worker()):
        await until(lambda: len(gate.runs) == world.settings.concurrency)
        await asyncio.sleep(0.01)
        assert len(gate.runs) == world.settings.concurrency
        assert REGISTRY.get_sample_value("fairlead_tool_calls_running") == len(gate.runs)
        gate.opened.set()
        await until(lambda: not world.jobs)

    assert len(await world.settlements()) == 20
    assert REGISTRY.get_sample_value("fairlead_tool_calls_running") == 0
