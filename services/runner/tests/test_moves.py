"""Moves of a drain: tool calls, interrupts, retries, timers, limits, defects."""

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import Response
from typing_extensions import override

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_eventlog.ports import CommitPage, Head, PingResult
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema import subjects
from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    ToolDeferred,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent
from fairlead_schema.tools.request import ToolCatalog, ToolInfo, ToolRequest
from services.runner.tests.conftest import (
    AT,
    World,
    admitted,
    error_reply,
    run_consumer,
    stream_reply,
    text_reply,
    wait_until,
)

READ = ToolInfo(name="read", description="reads", input_schema={}, retry="pure", revision="read@1")


def call_reply(*ids: str) -> Response:
    tool_calls = [
        {"index": n, "id": id_, "function": {"name": "read", "arguments": '{"path": "x"}'}}
        for n, id_ in enumerate(ids)
    ]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"tool_calls": tool_calls}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return stream_reply(*(json.dumps(chunk) for chunk in chunks), "[DONE]")


def tool_succeeded(event: SessionEvent, call: str = "c1") -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id=event.assistant_message_id,  # type: ignore[union-attr]
        call_id=call,
        structured={},
        content=(TextContent(text="found"),),
        provider=Executor(),
    )


def offer_tool(world: World) -> None:
    """Let the tools service offer one tool."""
    body = json.dumps({"data": ToolCatalog(tools=(READ,)).wire()}).encode()

    async def answer(_body: bytes) -> bytes:
        return body

    world.eventlog.requests.answerers[subjects.tool_catalog("default")] = answer  # type: ignore[attr-defined]


async def wait_for_event(world: World, type_: str) -> SessionEvent:
    events: list[SessionEvent] = []

    async def look() -> bool:
        events[:] = [event for event in await world.events() if event.type == type_]
        return bool(events)

    async with asyncio.timeout(5):
        while not await look():
            await asyncio.sleep(0.001)
    return events[0]


async def test_a_call_is_sent_once_it_is_durable_and_its_result_continues_the_turn(
    world: World,
) -> None:
    """E-01, E-03, E-04: the request leaves after the commit; the next turn sees the result."""
    offer_tool(world)
    world.provider.replies.extend([call_reply("c1"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        called = await wait_for_event(world, "tool.called")
        work = world.eventlog.work
        assert isinstance(work, MemoryWorkQueues)
        await wait_until(lambda: bool(work.queue("TOOLS").messages))
        await world.write(tool_succeeded(called))
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert types.index("attempt.finished") < types.index("tool.succeeded")
    assert types.index("tool.succeeded") < types.index("step.ended")
    assert types.count("step.ended") == 2
    assert world.provider.messages()[-1][0] == "tool"
    assert called.revision == "read@1"  # type: ignore[union-attr]
    assert world.provider.requests[0]["tools"][0]["function"]["name"] == "read"


async def test_long_tools_park_the_session_and_a_wake_meanwhile_writes_nothing(
    world: World,
) -> None:
    """ARCHITECTURE section 5: a runner never blocks; P-06."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    world.provider.replies.extend([call_reply("c1"), text_reply("thanks")])
    await world.write(admitted("msg_1"))

    await world.drain()
    parked = await world.types()
    await world.drain()
    again = await world.types()
    await world.write(tool_succeeded(await wait_for_event(world, "tool.called")))
    await world.drain()

    assert parked[-1] == "execution.released"
    assert again == parked
    assert (await world.types()).count("step.ended") == 2


async def test_an_interrupt_settles_a_parked_session(world: World) -> None:
    """E-16, E-17: the next owner honours the interrupt."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.drain()

    await world.write(InterruptRequested())
    await world.drain("run_b")

    types = await world.types()
    assert types[-4:] == ["execution.claimed", "tool.failed", "step.ended", "execution.released"]
    assert (await world.session()).execution.rested == "interrupted"
    assert len(world.provider.requests) == 1


@pytest.mark.parametrize("in_stream", [True, False], ids=["in the answer", "raised"])
async def test_a_stream_that_fails_after_a_call_decides_what_becomes_of_the_queue(
    world: World,
    in_stream: bool,  # noqa: FBT001
) -> None:
    """B-24, E-14, E-15: either way the result of the call is recorded, and no turn follows it."""
    offer_tool(world)
    error = json.dumps({"error": {"message": "it broke"}}) if in_stream else "{no json"
    body = bytes(call_reply("c1").body).decode().replace("[DONE]", error)
    world.provider.replies.append(Response(body, media_type="text/event-stream"))
    await world.write(admitted("msg_1"), admitted("msg_q", "queued", "queue"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        called = await wait_for_event(world, "attempt.finished")
        await world.write(tool_succeeded(called))
        await wait_until(lambda: not world.wakes)

    types, session = await world.types(), await world.session()
    assert types.index("tool.succeeded") < types.index("step.failed")
    pending = [item.message_id for item in session.inbox.pending]
    expected = ("idle", []) if in_stream else ("failed", ["msg_q"])
    assert (session.execution.rested, pending) == expected


async def test_a_nudge_makes_a_streaming_turn_see_its_interrupt(world: World) -> None:
    """C-12: a nudge makes a long turn look at the log and stop."""
    hanging = asyncio.Event()

    async def hangs() -> Response:
        await hanging.wait()
        return text_reply("too late")

    world.provider.replies.append(hangs)
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        await wait_until(lambda: len(world.provider.requests) == 1)
        await world.write(InterruptRequested())
        consumer.nudge(AT)
        await wait_until(lambda: not world.wakes)
        hanging.set()

    assert (await world.session()).execution.rested == "interrupted"
    assert "step.started" not in await world.types()


async def test_a_busy_provider_is_asked_again_and_each_retry_is_told(world: World) -> None:
    """Q-13, D-43, D-44, P-04."""
    world.config["runner"] = {"retry_base_s": 0.001}
    world.provider.replies.extend(
        [error_reply(429, "busy"), error_reply(503, "busy"), text_reply("hello")]
    )
    await world.write(admitted("msg_1"))

    await world.drain()

    types = await world.types()
    assert types.count("retried") == 2
    assert types.count("attempt.dispatched") == 3
    assert types.count("prompt.promoted") == 1
    assert types.count("step.started") == 1


async def test_a_provider_that_stays_busy_fails_the_step_in_the_end(world: World) -> None:
    world.config["runner"] = {"retry_base_s": 0.001, "retry_attempts_max": 2}
    world.provider.replies.extend([error_reply(429, "busy")] * 2)
    await world.write(admitted("msg_1"))

    await world.drain()

    types = await world.types()
    assert (types.count("retried"), types.count("step.failed")) == (1, 1)
    assert (await world.session()).execution.rested == "failed"


async def test_a_long_back_off_sets_a_timer_and_an_early_wake_does_nothing(world: World) -> None:
    world.config["runner"] = {"park_after_s": 0, "retry_base_s": 60}
    world.provider.replies.extend([error_reply(429, "busy"), text_reply("hello")])
    await world.write(admitted("msg_1"))

    await world.drain()
    parked = await world.types()
    await world.drain()

    assert (await world.session()).execution.rested == "retry-later"
    assert await world.types() == parked
    timers = world.eventlog.timers
    assert isinstance(timers, MemoryTimers)
    assert timers.times[AT] == (await world.session()).execution.wake_at


async def test_a_due_timer_wakes_its_session(world: World) -> None:
    timers = world.eventlog.timers
    assert isinstance(timers, MemoryTimers)
    await timers.wake_at(AT, 1)
    consumer = WakeConsumer(world.context())
    firing = asyncio.create_task(consumer.fire_timers())
    timers.fire(AT)

    await wait_until(lambda: bool(world.wakes))

    firing.cancel()
    assert [job.subject for job in world.wakes] == [subjects.wake(AT)]


async def test_too_many_calls_in_one_turn_are_refused_at_once(world: World) -> None:
    """E-30, P-06: the calls over the limit are settled as errors and never sent."""
    world.config["runner"] = {"calls_max": 1, "tools_wait_s": 0.01}
    world.provider.replies.append(call_reply("c1", "c2"))
    await world.write(admitted("msg_1"))

    await world.drain()

    failed = [event for event in await world.events() if isinstance(event, ToolFailed)]
    assert [event.call_id for event in failed] == ["c2"]
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 1


async def test_the_last_step_offers_no_tools_and_runs_none(world: World) -> None:
    """E-23, E-24."""
    offer_tool(world)
    world.config["agent"] = {"build": {"steps": 1}}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))

    await world.drain()

    (failed,) = [event for event in await world.events() if isinstance(event, ToolFailed)]
    assert failed.error == ErrorInfo(message="Tools are disabled after the maximum agent steps")
    assert "tools" not in world.provider.requests[0]
    assert world.provider.messages()[-1][0] == "assistant"
    assert (await world.session()).execution.rested == "turn-limit"


@pytest.mark.parametrize("life", ["alive", "reconnects", "gone", "overdue"])
async def test_a_call_that_was_begun_is_sent_again_only_if_nobody_works_on_it(
    world: World, life: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-20: a live worker settles its call. When the worker is gone, the request may be lost too.

    After a restart of the NATS server every worker seems gone until it has connected again.
    """
    world.shorten(worker_reconnect_s=0.0)
    world.config["runner"] = {"tools_wait_s": 0.01}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.drain()
    called: Any = await wait_for_event(world, "tool.called")
    ids = {"assistant_message_id": called.assistant_message_id, "call_id": "c1"}
    await world.write(ToolStarted(**ids, worker="wkr_1", generation=1))
    if life in {"alive", "overdue"}:
        await world.eventlog.liveness.answer_pings("wkr_1")
    if life == "overdue":
        await world.write(ToolDeferred(**ids, until=1))
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 1

    if life == "reconnects":
        reconnect_worker(world, "wkr_1", monkeypatch)
    await world.drain("run_b")

    again = [
        ToolRequest.model_validate_json(job.payload) for job in work.queue("TOOLS").messages[1:]
    ]
    assert [request.call_id for request in again] == (["c1"] if life in {"gone", "overdue"} else [])
    assert all(request.snapshot is None for request in again)


def reconnect_worker(world: World, worker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker answer pings after the first one that it missed."""
    liveness = world.eventlog.liveness
    assert isinstance(liveness, MemoryLiveness)
    ping = liveness.ping

    async def ping_and_answer(instance: str, *, timeout_s: float) -> PingResult:
        life = await ping(instance, timeout_s=timeout_s)
        if instance == worker:
            await liveness.answer_pings(worker)
        return life

    monkeypatch.setattr(liveness, "ping", ping_and_answer)


class FailingLog(MemoryLog):
    """A log whose reads fail because of a defect."""

    @override
    async def read(self, at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        raise ZeroDivisionError("our fault")


async def test_a_defect_puts_the_session_aside_after_a_few_tries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(world.log), "read", FailingLog.read)
    await world.wake()
    (job,) = world.wakes
    job.deliveries = 4

    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)

    dead = world.eventlog.dead_letters
    assert isinstance(dead, MemoryDeadLetters)
    assert "our fault" in dead.letters[0][3]
