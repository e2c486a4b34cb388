"""A tenant's quotas in a worker: calls wait in their queue, and outputs are cut. FINDINGS B11."""

import json

from prometheus_client import REGISTRY

from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_schema import subjects
from fairlead_schema.commands.quota import QuotaLimits, QuotaPolicy
from fairlead_schema.events import ToolStarted
from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import Config
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.quotas import OutputQuota
from fairlead_tools.registry.tool import CallContext, Result
from services.tools.tests.conftest import (
    AT,
    CREATOR,
    EchoInput,
    EchoOutput,
    Gate,
    Harness,
    run_worker,
    tool,
    wait_until,
)

LIMITS = QuotaLimits(calls=2, output_bytes=100)
STARTED = ToolStarted(
    assistant_message_id="msg_a", call_id="call_1", worker="wkr_dead", generation=1
)


def limited_worker(harness: Harness, calls: int, limits: QuotaLimits = LIMITS) -> ToolWorker:
    """A worker with quotas, where the projector counts so many running calls."""
    return worker_with(harness, calls, QuotaPolicy(lambda _tenant: limits))


def worker_with(harness: Harness, calls: int, quotas: QuotaPolicy) -> ToolWorker:
    async def answer(body: bytes) -> bytes:
        return json.dumps({"data": {"calls": calls} | json.loads(body)}).encode()

    assert isinstance(harness.eventlog.requests, MemoryRequests)
    harness.eventlog.requests.answerers[subjects.tenant_usage("default")] = answer
    return harness.worker(policy=CallPolicy(Config().rules, quotas=quotas))


async def test_calls_over_the_quota_wait_in_their_queue(harness: Harness) -> None:
    """B11: nothing is written for a call that waits, and each call runs when there is room."""
    gate = Gate()
    slow = tool(execute=gate, retry="once")
    harness.registry.register(slow)
    for number in range(4):
        await harness.call(slow, id_=f"call_{number}")

    async with run_worker(limited_worker(harness, calls=0)):
        await harness.wait_for_starts(2)
        await wait_until(lambda: sum(job.deliveries > 0 for job in harness.jobs) == 4)
        await wait_until(lambda: len(gate.runs) == 2)
        begun = len(await harness.starts())
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert begun == 2
    assert len(await harness.settlements()) == len(gate.runs) == 4


async def test_calls_count_for_the_principal_that_created_their_session(harness: Harness) -> None:
    """B11: the worker knows the principal from the log and from a snapshot alike."""
    gate = Gate()
    slow = tool(execute=gate, retry="once")
    harness.registry.register(slow)
    for number in range(3):
        await harness.call(slow, id_=f"call_{number}")
    own = QuotaPolicy(principal=lambda _tenant: QuotaLimits(calls=1))
    metric, labels = "fairlead_quota_reached_total", {"quota": "principal.calls"}
    before = REGISTRY.get_sample_value(metric, labels) or 0

    async with run_worker(worker_with(harness, 0, own)):
        await harness.wait_for_starts(1)
        await wait_until(lambda: sum(job.deliveries > 0 for job in harness.jobs) == 3)
        begun = len(await harness.starts())
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert begun == 1
    assert {run.principal for run in gate.runs} == {CREATOR}
    assert len(await harness.settlements()) == 3
    assert (REGISTRY.get_sample_value(metric, labels) or 0) >= before + 2


async def test_outputs_count_for_the_principal_that_created_their_session(
    harness: Harness,
) -> None:
    """B11: of the second output the model sees both ends, and others still store theirs."""
    outputs = harness.eventlog.outputs
    own = QuotaPolicy(principal=lambda _tenant: QuotaLimits(output_bytes=100))

    async def run(_request: EchoInput, _context: CallContext) -> Result:
        return Result(EchoOutput(said="x"), content=(TextContent(text="line\n" * 20_000),))

    long = tool(execute=run)
    harness.registry.register(long)
    async with run_worker(worker_with(harness, 0, own)):
        for number in range(2):
            await harness.call(long, id_=f"call_{number}")
            await wait_until(lambda: not harness.jobs)

    stored = await outputs.stored_bytes("default")
    assert stored.of(CREATOR) == stored.total == 100_000
    quota = OutputQuota(outputs, own)
    reached = await quota.find_reached_quota("default", CREATOR)
    assert reached is not None
    assert reached.name == "principal.output_bytes"
    assert await quota.find_reached_quota("default", "key:bob") is None


async def test_a_call_of_a_dead_worker_goes_on_although_the_quota_is_reached(
    harness: Harness,
) -> None:
    """B11: that call counts already, so it would otherwise wait for itself for ever."""
    again = tool(retry="pure")
    harness.registry.register(again)
    await harness.call(again)
    await harness.write(STARTED)

    async with run_worker(limited_worker(harness, calls=2)):
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'k'}"]


async def test_an_output_over_the_quota_is_cut_and_what_was_stored_stays() -> None:
    """B11: the call succeeds, and the marker says that the rest is lost."""
    outputs = MemoryOutputs()
    quota = OutputQuota(outputs, QuotaPolicy(lambda _tenant: LIMITS))
    retention = OutputRetention(outputs, OutputLimits(4, 200), 1000, quota)
    outcome = Succeeded(structured={}, content=(TextContent(text="line\n" * 100),))

    first, second = await retention.bound(AT, outcome), await retention.bound(AT, outcome)

    assert isinstance(first, Succeeded)
    assert isinstance(second, Succeeded)
    assert first.output_paths is not None
    assert second.output_paths is None
    (shown,) = second.content
    assert isinstance(shown, TextContent)
    assert "the rest could not be kept" in shown.text
    assert len(outputs.outputs) == 1
