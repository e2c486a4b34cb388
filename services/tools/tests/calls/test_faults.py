"""Faults around a call: outages, erased or unreadable sessions, defects, heartbeats."""

import asyncio

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.work_queues import MemoryMessage
from fairlead_schema.events import SessionArchived
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_service.config.configuration import Config
from fairlead_session.people.permission import Need
from fairlead_session.state.session import Session
from fairlead_testing.newer_release import newer_commit, newer_release
from fairlead_tools.calls.decision import BeginDecider, Decision
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.request import TakenRequest
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.calls.worker import DEFECTS_MAX, ToolWorker
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import (
    AT,
    EchoInput,
    Gate,
    Harness,
    cancel_task,
    run_worker,
    tool,
    wait_until,
)

GAPPED = Commit("cmt_y", record((Draft("evt_y", 1, SessionArchived()),), after=70))


async def test_a_held_request_is_kept_in_progress(harness: Harness) -> None:
    """E-20: no other worker gets the request of a call that runs."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    worker = harness.worker()
    heartbeat = asyncio.create_task(worker.heartbeat(0.001))

    async with run_worker(worker):
        await wait_until(lambda: job.extensions >= 2)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)
    await cancel_task(heartbeat)

    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_result_outlives_an_outage_of_the_log(harness: Harness) -> None:
    """E-18: the worker writes the result once, as soon as the servers are back."""
    harness.timings = CallTimings(log_retry_s=0.001)
    echo_tool = tool()
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    outages: list[str] = []

    async def away(drafts: tuple[Draft, ...]) -> None:
        kind = drafts[0].event.type
        outages.append(kind)
        if outages.count(kind) == 1:
            raise LogUnavailable("away")

    harness.log.before = away

    assert await harness.serve_all() == ["{'said': 'k'}"]
    assert outages == ["tool.started"] * 2 + ["tool.succeeded"] * 2


async def test_a_session_erased_in_mid_call_is_let_go(harness: Harness) -> None:
    """E-20: there is nothing to settle, and nothing hangs."""
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.log.erase(AT)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.events() == []


@pytest.mark.parametrize("with_snapshot", [False, True])
@pytest.mark.parametrize("when", ["before", "tool.started", "running", "tool.succeeded"])
@pytest.mark.parametrize("strange", [b"?", encode(GAPPED)], ids=["no JSON", "a gap"])
async def test_a_session_that_cannot_be_read_is_buried(
    harness: Harness,
    when: str,
    strange: bytes,
    with_snapshot: bool,  # noqa: FBT001
) -> None:
    """H-19, E-20: whenever the log breaks, the dead letter says why, and the call runs at most once."""
    harness.with_snapshot = with_snapshot
    gate = Gate()
    echo_tool = tool(execute=gate)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    async def strike(drafts: tuple[Draft, ...]) -> None:
        if drafts[0].event.type == when:
            harness.log.before = None
            await harness.log.append_raw(AT, strange)

    harness.log.before = strike
    if when == "before":
        await harness.log.append_raw(AT, strange)
    async with run_worker(harness.worker()):
        if when in {"running", "tool.succeeded"}:
            await wait_until(lambda: len(gate.runs) == 1)
        if when == "running":
            await harness.log.append_raw(AT, strange)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    ((source, _subject, _body, reason),) = harness.dead_letters
    assert (source, "malformed commit" in reason) == ("tool", True)
    assert len(gate.runs) == (1 if when in {"running", "tool.succeeded"} else 0)


@pytest.mark.parametrize("with_snapshot", [False, True])
async def test_a_session_of_a_newer_release_is_left_to_newer_workers(
    harness: Harness,
    with_snapshot: bool,  # noqa: FBT001
) -> None:
    """A13: its request stays, with growing pauses and without a dead letter. A newer worker runs it."""
    harness.with_snapshot = with_snapshot
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    await harness.log.append_raw(AT, newer_commit((await harness.log.head(AT)).seq + 1))

    async with run_worker(harness.worker()):
        await wait_until(lambda: job.deliveries > 6)
    assert job.delays[:6] == [1, 2, 4, 8, 16, 30]
    assert harness.dead_letters == []

    with newer_release():
        harness.log.parse_again(AT)
        job.expire()
        assert await harness.serve_all() == ["{'said': 'k'}"]
    assert harness.dead_letters == []


def fail_decisions(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let the code of the worker fail so often; the number of the delivery at each failure."""
    decide, defects = BeginDecider.decide, list[int]()

    async def decide_or_fail(
        self: BeginDecider, session: Session, request: TakenRequest
    ) -> Decision:
        if len(defects) < times:
            defects.append(request.deliveries)
            raise ZeroDivisionError("a defect")
        return await decide(self, session, request)

    monkeypatch.setattr(BeginDecider, "decide", decide_or_fail)
    return defects


async def expire_until_done(harness: Harness, job: MemoryMessage, defects: list[int]) -> None:
    """Let the deadline of a request pass after each failure."""
    count = 0

    def is_over() -> bool:
        return len(defects) > count or job not in harness.jobs

    while job in harness.jobs:
        await wait_until(is_over)
        count = len(defects)
        job.expire()


async def test_a_request_that_was_often_put_back_survives_a_defect(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-20: only failures of the worker count, not deliveries."""
    defects = fail_decisions(monkeypatch, 1)
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)
    job.deliveries = 100

    async with run_worker(harness.worker()):
        await expire_until_done(harness, job, defects)

    assert (defects, harness.dead_letters) == ([101], [])
    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_defect_that_stays_is_buried_and_the_call_told_so(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-07: the call fails, the session is woken, and the request is a dead letter."""
    defects = fail_decisions(monkeypatch, 1000)
    echo_tool = tool()
    harness.registry.register(echo_tool)
    job = await harness.call(echo_tool)

    async with run_worker(harness.worker()):
        await expire_until_done(harness, job, defects)

    assert len(set(defects)) == DEFECTS_MAX, "at so many deliveries"
    assert await harness.settlements() == ["Tool execution failed: a defect"]
    assert len(harness.wakes) == 1
    ((source, _subject, _body, reason),) = harness.dead_letters
    assert (source, "a defect" in reason) == ("tool", True)


async def test_a_permission_too_large_to_ask_for_fails_the_call(harness: Harness) -> None:
    """K-14: an ask that the log cannot hold fails the call, so nothing waits."""

    async def needs(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", metadata={"all": "x" * (9 << 20)}),)

    echo_tool = tool(needs=needs)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    rules = [{"action": "echo", "resource": "*", "effect": "ask"}]
    config = Config.model_validate({"permissions": rules})
    harness.liveness.alive.add("wkr_a")
    worker = ToolWorker(
        "wkr_a", harness.eventlog, harness.registry, harness.settings, CallPolicy(config.rules)
    )

    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)

    (message,) = await harness.settlements()
    assert message.startswith("Tool execution failed: it cannot be recorded")
    assert len(harness.wakes) == 1
