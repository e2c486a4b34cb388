"""A call from its request to its settlement: begin, run, settle, wake."""

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
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    echo,
    run_worker,
    tool,
    wait_until,
)


async def test_a_call_runs_after_its_start_is_in_the_log(harness: Harness) -> None:
    """E-01, E-27: the start is written first; then the tool runs, the call settles, the session wakes."""
    runs: list[tuple[list[str], CallContext]] = []

    async def run(request: EchoInput, context: CallContext) -> EchoOutput:
        runs.append((await harness.starts(), context))
        return await echo(request, context)

    echo_tool = tool(execute=run)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, key="hello")

    assert await harness.serve_all() == ["{'said': 'hello'}"]

    ((starts, context),) = runs
    assert starts == ["wkr_a"]
    assert (context.at, context.agent, context.location.directory) == (AT, "build", "/w")
    assert context.key == "ses_1:msg_a:call_1"
    assert [type(event) for event in await harness.events()][-2:] == [ToolStarted, ToolSucceeded]
    assert [job.subject for job in harness.wakes] == [subjects.wake(AT)]


async def test_a_request_that_comes_again_after_the_settlement_runs_nothing(
    harness: Harness,
) -> None:
    """E-20: the first worker may have died before its wake, so a repeated delivery wakes."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.serve_all()
    (wake,) = harness.wakes
    await wake.ack()

    job = await harness.put()
    job.deliveries = 1

    assert await harness.serve_all("wkr_b") == ["{'said': 'k'}"]
    assert await harness.starts() == ["wkr_a"]
    assert len(harness.wakes) == 1


async def test_a_request_for_a_call_that_the_log_does_not_know_is_dropped(harness: Harness) -> None:
    """E-01: a fenced runner's request starts nothing."""
    await harness.put("call_9")

    assert await harness.serve_all() == []
    assert await harness.starts() == []


async def test_a_request_is_not_dropped_because_a_read_lags_behind(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-01, A1: a replica that does not know the call yet proves nothing."""
    harness.with_snapshot = False
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    read, stale_reads = harness.log.read, [True, True]

    async def lag(at: Address, *, after: Head, limit: int = 500, reach: int = 0) -> CommitPage:
        page = await read(at, after=after, limit=limit, reach=reach)
        commits = page.commits[:1] if not after.position else ()
        is_stale = not reach and stale_reads and stale_reads.pop()
        return CommitPage(commits, more=False) if is_stale else page

    monkeypatch.setattr(harness.log, "read", lag)

    assert await harness.serve_all() == ["{'said': 'k'}"]
    assert job.deliveries == 1


async def test_a_name_that_was_never_advertised_is_unknown(harness: Harness) -> None:
    """E-06, J-10: the call fails without a start, also if the tool is registered by now."""
    harness.registry.register(tool("late"))
    await harness.call("missing")
    await harness.call("late", id_="call_2")

    assert sorted(await harness.serve_all()) == ["Unknown tool: late", "Unknown tool: missing"]
    assert await harness.starts() == []
    assert harness.wakes


async def test_another_registration_than_the_advertised_one_is_stale(harness: Harness) -> None:
    """J-05, J-06: a removed or a replaced tool; other names are not affected."""
    removed, replaced, kept = tool("removed"), tool("replaced"), tool("kept")
    registration = harness.registry.register(removed)
    for registered in (replaced, kept):
        harness.registry.register(registered)
    await harness.call(removed, id_="call_1")
    await harness.call(replaced, id_="call_2")
    await harness.call(kept, id_="call_3")
    harness.registry.remove(registration)
    harness.registry.register(tool("replaced", description="other"))

    assert sorted(await harness.serve_all()) == [
        "Stale tool call: removed",
        "Stale tool call: replaced",
        "{'said': 'k'}",
    ]


async def test_a_running_call_is_unaffected_by_later_registrations(harness: Harness) -> None:
    """J-09: a call runs with the tool that it began with."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    registration = harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(gate.runs))
        harness.registry.remove(registration)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_another_writer_between_decision_and_commit_changes_nothing(harness: Harness) -> None:
    """E-01, E-20: on a conflict the worker reads on and decides again, at both commits."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    overtaken: list[str] = []

    async def overtake(drafts: tuple[Draft, ...]) -> None:
        kind = drafts[0].event.type
        if kind not in overtaken:
            overtaken.append(kind)
            await harness.write(
                ToolStarted(
                    assistant_message_id="msg_z", call_id="other", worker="wkr_z", generation=1
                )
            )

    harness.log.before = overtake

    assert await harness.serve_all() == ["{'said': 'k'}"]
    assert overtaken == ["tool.started", "tool.succeeded"]
    assert (await harness.starts()).count("wkr_a") == 1


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'{"sessionID": "ses_2"}'])
async def test_poison_is_buried_and_acknowledged(harness: Harness, payload: bytes) -> None:
    """J-17: a malformed request becomes a dead letter, and later requests are served."""
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.eventlog.work.put(subjects.tool(AT, "default"), payload)
    await harness.call(echo_tool)

    assert await harness.serve_all() == ["{'said': 'k'}"]
    ((source, subject, body, reason),) = harness.dead_letters
    assert (source, subject, body) == ("tool", subjects.tool(AT, "default"), payload)
    assert reason


async def test_no_more_calls_run_at_a_time_than_the_worker_may_hold(harness: Harness) -> None:
    """E-02: calls run in parallel up to a limit, and a gauge shows how many."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    for number in range(20):
        await harness.call(echo_tool, id_=f"call_{number}")

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == harness.settings.concurrency)
        await asyncio.sleep(0.01)
        assert len(gate.runs) == harness.settings.concurrency
        assert REGISTRY.get_sample_value("fairlead_tool_calls_running") == len(gate.runs)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert len(await harness.settlements()) == 20
    assert REGISTRY.get_sample_value("fairlead_tool_calls_running") == 0
