"""Tool calls of a turn: sent once they are durable, awaited, parked, refused, sent again."""

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import Response

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_eventlog.ports import START, CommitPage, Head, StoredCommit
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_runner.drain import log_waiter
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    AgentSwitched,
    InterruptRequested,
    ToolDeferred,
    ToolFailed,
    ToolStarted,
)
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo
from fairlead_schema.tools.request import ToolRequest
from fairlead_service import ids
from services.runner.tests.conftest import (
    AT,
    WAIT_S,
    World,
    admitted,
    answer_after_first_ping,
    run_consumer,
    text_reply,
    wait_until,
)
from services.runner.tests.tool_calls import call_reply, offer_tool, tool_succeeded, wait_for_event


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


async def test_a_settlement_that_the_log_never_had_is_given_up_for_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-04, A1: a nudge from before a restore. Nothing is written from it, and no provider sees it."""
    offer_tool(world)
    world.provider.replies.extend([call_reply("c1"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        called = await wait_for_event(world, "attempt.finished")
        head = await world.log.head(AT)
        draft = Draft(ids.event_id(), 1, tool_succeeded(called))
        lost = Commit(ids.commit_id(), record((draft,), after=head.seq))
        position = head.position + 1
        refused, append = asyncio.Event(), world.log.append

        async def note_refusal(*args: Any, **options: Any) -> StoredCommit:  # noqa: ANN401
            try:
                return await append(*args, **options)
            except AppendConflict:
                refused.set()
                raise

        monkeypatch.setattr(world.log, "append", note_refusal)
        consumer.nudge(Nudge(AT, position, CommitHint(position, head.position, encode(lost))))
        await asyncio.wait_for(refused.wait(), WAIT_S)
        assert len(world.provider.requests) == 1
        assert (await world.log.head(AT)) == head
        await world.write(tool_succeeded(called))
        consumer.nudge(Nudge(AT, (await world.log.head(AT)).position))
        await wait_until(lambda: not world.wakes)

    assert len(world.provider.requests) == 2
    assert (await world.session()).execution.rested == "idle"


@pytest.mark.parametrize("gap", [False, True], ids=["next", "after another"])
async def test_a_commit_that_a_nudge_carries_is_not_read_again(
    world: World,
    gap: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E-04, A1: a commit that does not follow what the runner has makes it read the log."""
    monkeypatch.setattr(log_waiter, "LOOK_S_MIN", WAIT_S)
    offer_tool(world)
    world.provider.replies.extend([call_reply("c1"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer, reads = WakeConsumer(world.context()), list[Head]()
    read = world.log.read

    async def note_read(
        at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        reads.append(after)
        return await read(at, after=after, limit=limit, reach=reach)

    async with run_consumer(consumer):
        called = await wait_for_event(world, "attempt.finished")
        await asyncio.sleep(0)
        if gap:
            await world.write(admitted("msg_2"))
        await world.write(tool_succeeded(called))
        before, last = (await read(AT, after=START)).commits[-2:]
        carried = CommitHint(last.position, before.position, encode(last.commit))
        monkeypatch.setattr(world.log, "read", note_read)
        consumer.nudge(Nudge(AT, last.position, carried))
        await wait_until(lambda: len(world.provider.requests) > 1)
        assert bool(reads) is gap
        await wait_until(lambda: not world.wakes)

    assert (await world.session()).execution.rested == "idle"


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


async def test_an_agent_that_takes_over_late_gets_its_last_step(world: World) -> None:
    """E-23: a switch to an agent with fewer steps ends in text, not in silence."""
    offer_tool(world)
    world.config["agent"] = {"build": {"steps": 9}, "plan": {"steps": 1}}
    world.provider.replies.extend([call_reply("c1"), call_reply("c2"), text_reply("that is all")])
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        first = await wait_for_event(world, "tool.called")
        await world.write(tool_succeeded(first, "c1"))
        consumer.nudge(Nudge(AT))
        second = await wait_for_event(world, "tool.called", count=2)
        await world.write(AgentSwitched(message_id="msg_g", agent="plan"))
        await world.write(tool_succeeded(second, "c2"))
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)

    assert ["tools" in request for request in world.provider.requests] == [True, True, False]
    assert (await world.session()).execution.rested == "idle"


@pytest.mark.parametrize("life", ["alive", "reconnects", "gone", "overdue"])
async def test_a_call_that_was_begun_is_sent_again_only_if_nobody_works_on_it(
    world: World, life: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-20: a live worker settles its call. When the worker is gone, the request may be lost too.

    After a restart of the NATS server every worker seems gone until it has connected again.
    """
    world.shorten(worker_second_look_s=0.01)
    world.config["runner"] = {"tools_wait_s": 0.01}
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    await world.drain()
    called: Any = await wait_for_event(world, "tool.called")
    ids = {"assistant_message_id": called.assistant_message_id, "call_id": "c1"}
    await world.write(ToolStarted(**ids, worker="wkr_1", generation=1))
    if life in {"alive", "overdue"}:
        await world.eventlog.liveness.start_answering("wkr_1")
    if life == "overdue":
        await world.write(ToolDeferred(**ids, until=1))
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 1

    if life == "reconnects":
        answer_after_first_ping(world, "wkr_1", monkeypatch)
    await world.drain("run_b")

    again = [
        ToolRequest.model_validate_json(job.payload) for job in work.queue("TOOLS").messages[1:]
    ]
    assert [request.call_id for request in again] == (["c1"] if life in {"gone", "overdue"} else [])
    assert all(request.snapshot is None for request in again)
