"""Faults around a call: an outage, a deleted session, one that cannot be read, a missed heartbeat."""

import asyncio

import pytest

from fairlead_eventlog import session_writer
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.work_queues import MemoryMessage
from fairlead_schema.events import SessionArchived
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_service.config.configuration import Config
from fairlead_session.people.permission import Need
from fairlead_session.state.session import Session
from fairlead_tools.calls.decision import BeginDecider, Decision
from fairlead_tools.calls.request import TakenRequest
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
    """E-20: whoever lives and works is not overtaken."""
    gate = Gate()
    running = tool(execute=gate)
    harness.registry.register(running)
    job = await harness.call(running)
    execute = harness.worker()
    beating = asyncio.create_task(execute.heartbeat(0.001))

    async with run_worker(execute):
        await wait_until(lambda: job.extensions >= 2)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)
    await cancel_task(beating)

    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_result_outlives_an_outage_of_the_log(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-18: it is written as soon as the servers are back, once."""
    monkeypatch.setattr(session_writer, "RETRY_S", 0.001)
    running = tool()
    harness.registry.register(running)
    await harness.call(running)
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
    running = tool(execute=gate)
    harness.registry.register(running)
    await harness.call(running)

    async with run_worker(harness.worker()):
        await wait_until(lambda: len(gate.runs) == 1)
        await harness.log.erase(AT)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.events() == []


@pytest.mark.parametrize("briefed", [False, True])
@pytest.mark.parametrize("when", ["before", "tool.started", "running", "tool.succeeded"])
@pytest.mark.parametrize("strange", [b"?", encode(GAPPED)], ids=["no JSON", "a gap"])
async def test_a_session_that_cannot_be_read_is_buried(
    harness: Harness,
    when: str,
    strange: bytes,
    briefed: bool,  # noqa: FBT001
) -> None:
    """H-19, E-20: whenever it breaks, the reason is visible, and the call runs at most once."""
    harness.briefed = briefed
    gate = Gate()
    running = tool(execute=gate)
    harness.registry.register(running)
    await harness.call(running)

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

    ((source, _subject, _body, reason),) = harness.buried
    assert (source, "malformed commit" in reason) == ("tool", True)
    assert len(gate.runs) == (1 if when in {"running", "tool.succeeded"} else 0)


def defective(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let the worker's own code fail so often; the deliveries at which it did."""
    decide, failed = BeginDecider.decide, list[int]()

    async def decide_or_fail(
        self: BeginDecider, session: Session, request: TakenRequest
    ) -> Decision:
        if len(failed) < times:
            failed.append(request.deliveries)
            raise ZeroDivisionError("a defect")
        return await decide(self, session, request)

    monkeypatch.setattr(BeginDecider, "decide", decide_or_fail)
    return failed


async def again(harness: Harness, job: MemoryMessage, failed: list[int]) -> None:
    """Let the deadline of a request pass each time that nobody keeps it."""
    seen = 0

    def heard() -> bool:
        return len(failed) > seen or job not in harness.jobs

    while job in harness.jobs:
        await wait_until(heard)
        seen = len(failed)
        job.expire()


async def test_a_request_that_was_often_put_back_survives_a_defect(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-20: waiting is no fault; only what failed here counts against it."""
    failed = defective(monkeypatch, 1)
    running = tool()
    harness.registry.register(running)
    job = await harness.call(running)
    job.deliveries = 100

    async with run_worker(harness.worker()):
        await again(harness, job, failed)

    assert (failed, harness.buried) == ([101], [])
    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_a_defect_that_stays_is_buried_and_the_call_told_so(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-07: nothing hangs: the model is told, the session woken, the operator has the request."""
    failed = defective(monkeypatch, 1000)
    running = tool()
    harness.registry.register(running)
    job = await harness.call(running)

    async with run_worker(harness.worker()):
        await again(harness, job, failed)

    assert len(failed) == DEFECTS_MAX
    assert await harness.settlements() == ["Tool execution failed: a defect"]
    assert len(harness.wakes) == 1
    ((source, _subject, _body, reason),) = harness.buried
    assert (source, "a defect" in reason) == ("tool", True)


async def test_a_permission_too_large_to_ask_for_fails_the_call(harness: Harness) -> None:
    """K-14: what no log can hold is nobody's question, and nothing waits for it."""

    async def needs(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", metadata={"all": "x" * (9 << 20)}),)

    running = tool(needs=needs)
    harness.registry.register(running)
    await harness.call(running)
    rules = [{"action": "echo", "resource": "*", "effect": "ask"}]
    config = Config.model_validate({"permissions": rules})
    harness.liveness.alive.add("wkr_a")
    worker = ToolWorker("wkr_a", harness.eventlog, harness.registry, harness.settings, config.rules)

    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)

    (message,) = await harness.settlements()
    assert message.startswith("Tool execution failed: it cannot be recorded")
    assert len(harness.wakes) == 1
