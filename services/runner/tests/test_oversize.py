"""An answer that the log cannot hold fails its turn at once: it is not asked for again and again."""

import json
from typing import Any

import pytest
from starlette.responses import Response

from fairlead_eventlog.memory import session_log
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_schema.events import ExecutionReleased, StepFailed, TextEnded, ToolCalled, ToolFailed
from fairlead_schema.record import Draft, Recorded
from fairlead_session.turn.stream import BLOCK_LENGTH_MAX
from fairlead_session.verify.verify import verify
from services.runner.tests.conftest import DATE, World, admitted, of, says, streamed

MIB = 1024 * 1024


def bulky(size: int) -> str:
    """A text of so many bytes that is a third as long."""
    return "☃" * (size // 3)


@pytest.fixture(autouse=True)
def _impatient(world: World) -> None:
    world.shorten(log_retry_s=0.001)


def calls(*sizes: int) -> Response:
    made = [
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
        {"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in made
    ]
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return streamed(*(json.dumps(chunk) for chunk in (*chunks, finish)), "[DONE]")


async def sound(world: World) -> list[Recorded]:
    log = await world.recorded()
    assert verify(log) == []
    return log


async def test_a_text_that_no_commit_holds_fails_its_turn_with_a_reason(world: World) -> None:
    """D-10, B-24: like any other failure of the request; what is pending waits."""
    await world.write(admitted("msg_1"), admitted("msg_q", delivery="queue"))
    world.provider.replies.append(says(bulky(9 * MIB)))

    await world.drained()

    events = [one.event for one in await sound(world)]
    (failed,) = of(events, StepFailed)
    assert "exceeds" in failed.error.message
    assert failed.raised
    assert of(events, ExecutionReleased)[-1].reason == "failed"
    assert len(world.provider.requests) == 1
    assert [item.message_id for item in (await world.session()).inbox.pending] == ["msg_q"]


async def test_a_text_without_end_is_cut_off_and_kept(world: World) -> None:
    """D-10, D-18: nobody waits until it does not fit any more."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(says("x" * (BLOCK_LENGTH_MAX + 1)))

    await world.drained()

    events = [one.event for one in await sound(world)]
    assert "is longer than" in of(events, StepFailed)[0].error.message
    assert of(events, TextEnded)[0].text == "xx"


async def test_calls_that_fit_only_one_by_one_are_written_one_by_one(world: World) -> None:
    """E-01: each is durable before it is sent."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(calls(5 * MIB, 5 * MIB))

    await world.drained()

    events = [one.event for one in await sound(world)]
    assert [event.call_id for event in of(events, ToolCalled)] == ["c0", "c1"]
    assert of(events, StepFailed) == []
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 2
    assert (await world.session()).execution.rested == "parked"


@pytest.mark.parametrize("count", range(9, 15))
async def test_a_call_that_was_refused_is_not_sent_because_its_commit_was_split(
    world: World, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """E-30: its failure stays beside it, wherever the commit is split."""
    monkeypatch.setattr(session_log, "COMMIT_BYTES_MAX", 4_000)
    world.config["runner"] = {"tools_wait_s": 0.01, "calls_max": 1}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(calls(*[300] * count))
    alone: list[bool] = []

    async def watch(drafts: tuple[Draft, ...]) -> None:
        alone.append(isinstance(drafts[0].event, ToolFailed))

    world.log.before = watch
    await world.drained()

    events = [one.event for one in await sound(world)]
    assert len(of(events, ToolFailed)) == count - 1
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    assert len(work.queue("TOOLS").messages) == 1
    assert not any(alone)


async def test_an_input_that_no_commit_holds_fails_its_turn_and_keeps_the_calls_before_it(
    world: World,
) -> None:
    """E-14: the call that fits is run, and the failure is told when it is settled."""
    world.config["runner"] = {"tools_wait_s": 0.01}
    await world.write(admitted("msg_1"))
    world.provider.replies.append(calls(1, 9 * MIB))

    await world.drained()

    session, log = await world.session(), await sound(world)
    assert [call.call_id for call in session.calls] == ["c0"]
    assert session.turn.attempt is not None
    assert session.turn.attempt.finished is not None
    assert session.turn.attempt.finished.raised
    failed = of([one.event for one in log], ToolFailed)
    assert [event.call_id for event in failed] == ["c1"]
    assert len(world.provider.requests) == 1


async def test_what_no_commit_holds_before_a_turn_rests_the_session_with_a_reason(
    world: World,
) -> None:
    """P-27: it is no outage, so nobody tries it again and again; the input stays."""
    world.observe(DATE.model_copy(update={"baseline": bulky(9 * MIB)}))
    await world.write(admitted("msg_1"))

    await world.drained()

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("failed", 1)
    assert "exceeds" in (session.execution.rest_detail or "")
    assert world.provider.requests == []
