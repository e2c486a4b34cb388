"""A runner and people: it never waits for them, and goes on when they have answered."""

from typing import Any

import pytest

from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_eventlog.ports import START
from fairlead_eventlog.process_life import Nudge
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    ResumeRequested,
    SessionEvent,
)
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.tools.request import ToolRequest
from services.runner.tests.conftest import AT, World, admitted, run_consumer, text_reply, wait_until
from services.runner.tests.drain.test_ownership import LEFT, PARTIAL
from services.runner.tests.tool_calls import call_reply, tool_succeeded, wait_for_event

# A runner that waited for people would exceed the time limit of every test.
LONG_WAIT = {"tools_wait_s": 60.0}


def permission_asked(called: Any, call: str = "c1") -> PermissionAsked:  # noqa: ANN401
    source = CallSource(message_id=called.assistant_message_id, call_id=call)
    request = PermissionRequest(
        id=f"per_{call}", session_id="ses_1", action="read", resources=("x",), source=source
    )
    return PermissionAsked(request=request, agent="build")


def permission_granted(call: str = "c1") -> PermissionReplied:
    return PermissionReplied(request_id=f"per_{call}", reply="once")


def tool_requests(world: World) -> list[ToolRequest]:
    """The requests in the queue of the tools service, in order."""
    assert isinstance(world.eventlog.work, MemoryWorkQueues)
    jobs = world.eventlog.work.queue("TOOLS").messages
    return [ToolRequest.model_validate_json(job.payload) for job in jobs]


def requested_calls(world: World) -> list[str]:
    """The calls whose requests are in the queue, in order."""
    return [request.call_id for request in tool_requests(world)]


async def park_session(world: World, *ids: str) -> SessionEvent:
    """Park a session whose calls all wait for a permission."""
    world.config["runner"] = LONG_WAIT
    world.provider.replies.extend([call_reply(*ids), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())
    async with run_consumer(consumer):
        called = await wait_for_event(world, "tool.called")
        await wait_for_event(world, "attempt.finished")
        for call in ids:
            await world.write(permission_asked(called, call))
            consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)
    return called


async def test_it_parks_at_once_when_only_people_can_go_on(world: World) -> None:
    """K-25: the runner does not wait the minute that tools get; another wake writes nothing."""
    await park_session(world, "c1", "c2")
    before = await world.types()

    await world.drain("run_b")

    session = await world.session()
    assert (session.execution.rested, session.execution.owner, len(session.asks.permissions)) == (
        "parked",
        None,
        2,
    )
    assert await world.types() == before
    assert requested_calls(world) == ["c1", "c2"]


async def test_an_answer_sends_its_call_again_and_no_other(world: World) -> None:
    """K-15: the request is a new one, although no new owner is in the log."""
    called = await park_session(world, "c1", "c2")

    await world.write(permission_granted("c1"))
    await world.wake()
    async with run_consumer(WakeConsumer(world.context("run_b"))):
        await wait_until(lambda: requested_calls(world) == ["c1", "c2", "c1"])
        await world.write(tool_succeeded(called, "c1"))
    await world.write(permission_granted("c2"))
    await world.wake()
    async with run_consumer(WakeConsumer(world.context("run_c"))):
        await wait_until(lambda: requested_calls(world)[3:] == ["c2"])


async def test_each_answer_to_one_call_sends_it_again(world: World) -> None:
    """K-27: a second need is asked about after the first, and answered too."""
    called = await park_session(world, "c1")
    again = permission_asked(called).model_copy(
        update={"request": permission_asked(called).request.model_copy(update={"id": "per_second"})}
    )
    for number, answer in enumerate(("per_c1", "per_second"), start=2):
        await world.write(PermissionReplied(request_id=answer, reply="once"))
        await world.wake()
        async with run_consumer(WakeConsumer(world.context("run_b"))):
            await wait_until(lambda count=number: requested_calls(world) == ["c1"] * count)  # type: ignore[misc]
            if answer == "per_c1":
                await world.write(again)


async def test_an_owner_that_waits_for_another_call_sends_the_answered_one(world: World) -> None:
    """K-15: the owner need not park and be woken for that."""
    world.config["runner"] = LONG_WAIT
    world.provider.replies.extend([call_reply("c1", "c2"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    consumer = WakeConsumer(world.context())

    async with run_consumer(consumer):
        called = await wait_for_event(world, "tool.called")
        await wait_for_event(world, "attempt.finished")
        await wait_until(lambda: requested_calls(world) == ["c1", "c2"])
        await world.write(permission_asked(called, "c1"))
        await world.write(permission_granted("c1"))
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: requested_calls(world) == ["c1", "c2", "c1"])
        await world.write(tool_succeeded(called, "c1"), tool_succeeded(called, "c2"))
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert types.count("execution.claimed") == 1
    assert types.count("step.ended") == 2


async def test_a_decline_is_why_it_rests_and_the_inbox_stays(world: World) -> None:
    """E-10: calls and step settled, no follow-up request, the reason told."""
    await park_session(world, "c1", "c2")
    declined = InterruptRequested(declined="permission to run read (x) was declined")
    refused = PermissionReplied(request_id="per_c1", reply="reject")
    await world.write(admitted("msg_2", delivery="queue"))
    await world.write(refused, PermissionReplied(request_id="per_c2", reply="reject"), declined)

    await world.drain("run_b")

    session = await world.session()
    assert (session.execution.rested, session.execution.rest_detail) == (
        "declined",
        declined.declined,
    )
    assert (session.calls, session.turn.attempt, len(session.inbox.pending)) == ((), None, 1)
    assert (await world.types())[-5:] == [
        "execution.claimed",
        "tool.failed",
        "tool.failed",
        "step.ended",
        "execution.released",
    ]
    assert len(world.provider.requests) == 1


async def test_an_interrupt_answers_what_waits(world: World) -> None:
    """K-26: durably, in the commit that settles the calls."""
    await park_session(world, "c1")
    await world.write(InterruptRequested())

    await world.drain("run_b")

    assert (await world.types())[-5:] == [
        "execution.claimed",
        "permission.replied",
        "tool.failed",
        "step.ended",
        "execution.released",
    ]
    assert (await world.session()).asks.permissions == {}


async def crash_turn(world: World) -> QuestionAsked:
    """Recover the turn of a dead runner under the policy `ask`."""
    world.config["tenant"] = {"default": {"recovery": "ask"}}
    world.provider.replies.append(text_reply("again"))
    await world.write(admitted("msg_1"), *LEFT, *PARTIAL)
    await world.drain("run_b")
    question = await wait_for_event(world, "question.asked")
    assert isinstance(question, QuestionAsked)
    return question


async def test_a_crash_under_the_policy_ask_is_a_question(world: World) -> None:
    """P-01: the session is held until a person answers; one answer is to continue."""
    question = await crash_turn(world)
    session = await world.session()
    answer = QuestionReplied(request_id=question.request.id, answers=(("Continue",),))

    assert (session.execution.rested, session.execution.owner, world.provider.requests) == (
        "held",
        None,
        [],
    )
    await world.drain("run_c")
    assert world.provider.requests == []
    await world.write(answer, ResumeRequested())
    await world.drain("run_c")
    assert (await world.session()).execution.rested == "idle"
    assert len(world.provider.requests) == 1


async def test_new_input_takes_the_question_back(world: World) -> None:
    """P-01: a new prompt answers the question, and no question stays open."""
    question = await crash_turn(world)
    await world.write(admitted("msg_2", "never mind"))

    await world.drain("run_c")

    session, events = await world.session(), await world.events()
    assert QuestionRejected(request_id=question.request.id) in events
    assert (session.asks.questions, session.execution.rested) == ({}, "idle")


async def test_a_request_tells_what_its_sender_knows_as_long_as_nothing_else_counts(
    world: World,
) -> None:
    """E-01: the snapshot holds the head and the call. After a person's answer the worker reads the log."""
    called = await park_session(world, "c1", "c2")
    c1, c2 = tool_requests(world)
    assert c1.snapshot is not None
    assert c2.snapshot is not None
    page = await world.eventlog.log.read(AT, after=START)
    (heads,) = {
        stored.head
        for stored in page.commits
        if any(event.event.type == "attempt.finished" for event in stored.commit.events)
    }
    assert (c1.snapshot.position, c1.snapshot.seq) == (heads.position, heads.seq)
    assert (c1.snapshot.tool, c1.snapshot.input, c1.snapshot.runner) == (
        "read",
        {"path": "x"},
        "run_a",
    )

    await world.write(permission_granted("c1"))
    await world.wake()
    async with run_consumer(WakeConsumer(world.context("run_b"))):
        await wait_until(lambda: requested_calls(world) == ["c1", "c2", "c1"])
        await world.write(tool_succeeded(called, "c1"))
    assert tool_requests(world)[2].snapshot is None


async def test_a_large_input_is_not_sent_beside_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-01: the worker reads a large input from the log."""
    monkeypatch.setattr("fairlead_runner.calls.requests.SNAPSHOT_LENGTH_MAX", 64)
    await park_session(world, "c1")

    assert [request.snapshot for request in tool_requests(world)] == [None]
