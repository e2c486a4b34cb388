"""An answer that is too large for the log fails its turn at once, without a retry."""

import json
from typing import Any

import pytest
from starlette.responses import Response

from fairlead_eventlog.memory import session_log
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_schema.events import ExecutionReleased, StepFailed, TextEnded, ToolCalled, ToolFailed
from fairlead_schema.record import Draft, Recorded
from fairlead_session.turn.stream_blocks import BLOCK_LENGTH_MAX
from fairlead_session.verify.verify import verify
from services.runner.tests.conftest import (
    DATE,
    World,
    admitted,
    events_of,
    stream_reply,
    text_reply,
)

MIB = 1024 * 1024


def bulky(size: int) -> str:
    """A text of so many bytes that is a third as long."""
    return "☃" * (size // 3)


@pytest.fixture(autouse=True)
def _impatient(world: World) -> None:
    world.shorten(log_retry_s=0.001)


def call_reply(*sizes: int) -> Response:
    tool_calls = [
        {
            "index": n,
            "id": f"c{n}",
            "function": {
                "name": "read",
                "arguments": json.dumps({"path": bulky(size)}, ensure_ascii=False),
            },
        }
        for n, size in enumerate(sizes)
    ]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in tool_calls
    ]
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return stream_reply(*(json.dumps(chunk) for chunk in (*chunks, finish)), "[DONE]")


async def verified_log(world: World) -> list[Recorded]:
    log = await world.read_log()
    assert verify(log) == []
    return log


async def test_a_text_that_no_commit_holds_fails_its_turn_with_a_reason(world: World) -> None:
    """D-10, B-24: like any other failed request; pending input waits."""
    await world.write(admitted("msg_1"), admitted("msg_q", delivery="queue"))
    world.provider.replies.append(text_reply(bulky(9 * MIB)))

    await world.drain()

    events = [recorded.event for recorded in await verified_log(world)]
    (failed,) = events_of(events, StepFailed)
    assert "exceeds" in failed.error.message
    assert failed.raised
    assert events_of(events, ExecutionReleased)[-1].reason == "failed"
    assert len(world.provider.requests) == 1
    assert [item.message_id for item in (await world.session()).inbox.pending] == ["msg_q"]


async def test_a_text_without_end_is_cut_off_and_kept(world: World) -> None:
    """D-10, D-18: the stream is cut off before the text is too large for a commit."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(text_reply("x" * (BLOCK_LENGTH_MAX + 1)))

    await world.drain()

    events = [recorded.event for recorded in await verified_log(world)]
    assert "is longer than" in events_of(events, StepFailed)[0].error.message
    assert events_of(events, TextEnded)[0].text == "xx"


async def test_calls_that_fit_only_one_by_one_are_written_one_by_one(world: World) -> None:
    """E-01: each is durable before it is sent."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(call_reply(5 * MIB, 5 * MIB))

    await world.drain()

    events = [recorded.event for recorded in await verified_log(world)]
    assert [event.call_id for event in events_of(events, ToolCalled)] == ["c0", "c1"]
    assert events_of(events, StepFailed) == []
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 2
    assert (await world.session()).execution.rested == "parked"


@pytest.mark.parametrize("count", range(9, 15))
async def test_a_call_that_was_refused_is_not_sent_because_its_commit_was_split(
    world: World, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """E-30: the failure of a refused call stays in the commit of its call, wherever that is split."""
    monkeypatch.setattr(session_log, "COMMIT_BYTES_MAX", 4_000)
    world.config["runner"] = {"tools_wait_s": 0.01, "calls_max": 1}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(call_reply(*[300] * count))
    alone: list[bool] = []

    async def note_failures(drafts: tuple[Draft, ...]) -> None:
        alone.append(isinstance(drafts[0].event, ToolFailed))

    world.log.before = note_failures
    await world.drain()

    events = [recorded.event for recorded in await verified_log(world)]
    assert len(events_of(events, ToolFailed)) == count - 1
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 1
    assert not any(alone)


async def test_an_input_that_no_commit_holds_fails_its_turn_and_keeps_the_calls_before_it(
    world: World,
) -> None:
    """E-14: the call that fits runs, and the step fails when that call is settled."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(call_reply(1, 9 * MIB))

    await world.drain()

    session, log = await world.session(), await verified_log(world)
    assert [call.call_id for call in session.calls] == ["c0"]
    assert session.turn.attempt is not None
    assert session.turn.attempt.finished is not None
    assert session.turn.attempt.finished.raised
    failed = events_of([recorded.event for recorded in log], ToolFailed)
    assert [event.call_id for event in failed] == ["c1"]
    assert len(world.provider.requests) == 1


async def test_what_no_commit_holds_before_a_turn_rests_the_session_with_a_reason(
    world: World,
) -> None:
    """P-27: it is no outage, so there is no retry, and the input stays pending."""
    world.observe(DATE.model_copy(update={"baseline": bulky(9 * MIB)}))
    await world.write(admitted("msg_1"))

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("failed", 1)
    assert "exceeds" in (session.execution.rest_detail or "")
    assert world.provider.requests == []
