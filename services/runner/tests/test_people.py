"""A runner and people: it never waits for them, and goes on when they have answered."""

from typing import Any

import pytest

from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_eventlog.ports import START
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
from services.runner.tests.conftest import AT, World, admitted, says, standing, until
from services.runner.tests.test_moves import calls, first, settled
from services.runner.tests.test_ownership import LEFT, PARTIAL

# A runner that waited for people would exceed every test's patience.
PATIENT = {"tools_wait_s": 60.0}


def asked(called: Any, call: str = "c1") -> PermissionAsked:  # noqa: ANN401
    source = CallSource(message_id=called.assistant_message_id, call_id=call)
    request = PermissionRequest(
        id=f"per_{call}", session_id="ses_1", action="read", resources=("x",), source=source
    )
    return PermissionAsked(request=request, agent="build")


def permitted(call: str = "c1") -> PermissionReplied:
    return PermissionReplied(request_id=f"per_{call}", reply="once")


def requests(world: World) -> list[ToolRequest]:
    """What was asked of the tools, in order."""
    assert isinstance(world.eventlog.work, MemoryWorkQueues)
    jobs = world.eventlog.work.queue("TOOLS").messages
    return [ToolRequest.model_validate_json(job.payload) for job in jobs]


def sent(world: World) -> list[str]:
    """The calls whose requests are in the queue, in order."""
    return [request.call_id for request in requests(world)]


async def parked(world: World, *ids: str) -> SessionEvent:
    """A session whose every call asks, with nobody at it."""
    world.config["runner"] = PATIENT
    world.provider.replies.extend([calls(*ids), says("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    watch = WakeConsumer(world.context())
    async with standing(watch):
        called = await first(world, "tool.called")
        await first(world, "attempt.finished")
        for call in ids:
            await world.write(asked(called, call))
            watch.nudge(AT)
        await until(lambda: not world.wakes)
    return called


async def test_it_parks_at_once_when_only_people_can_go_on(world: World) -> None:
    """K-25: nobody is held for the minute that tools would get; a wake meanwhile writes nothing."""
    await parked(world, "c1", "c2")
    before = await world.types()

    await world.drained("run_b")

    session = await world.session()
    assert (session.execution.rested, session.execution.owner, len(session.asks.permissions)) == (
        "parked",
        None,
        2,
    )
    assert await world.types() == before
    assert sent(world) == ["c1", "c2"]


async def test_an_answer_sends_its_call_again_and_no_other(world: World) -> None:
    """K-15: the request is a new one, although the session's owner never changed durably."""
    called = await parked(world, "c1", "c2")

    await world.write(permitted("c1"))
    await world.wake()
    async with standing(WakeConsumer(world.context("run_b"))):
        await until(lambda: sent(world) == ["c1", "c2", "c1"])
        await world.write(settled(called, "c1"))
    await world.write(permitted("c2"))
    await world.wake()
    async with standing(WakeConsumer(world.context("run_c"))):
        await until(lambda: sent(world)[3:] == ["c2"])


async def test_each_answer_to_one_call_sends_it_again(world: World) -> None:
    """K-27: a second need is asked about after the first, and answered too."""
    called = await parked(world, "c1")
    again = asked(called).model_copy(
        update={"request": asked(called).request.model_copy(update={"id": "per_second"})}
    )
    for number, answer in enumerate(("per_c1", "per_second"), start=2):
        await world.write(PermissionReplied(request_id=answer, reply="once"))
        await world.wake()
        async with standing(WakeConsumer(world.context("run_b"))):
            await until(lambda count=number: sent(world) == ["c1"] * count)  # type: ignore[misc]
            if answer == "per_c1":
                await world.write(again)


async def test_an_owner_that_waits_for_another_call_sends_the_answered_one(world: World) -> None:
    """K-15: it need not park and be woken for that."""
    world.config["runner"] = PATIENT
    world.provider.replies.extend([calls("c1", "c2"), says("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()
    watch = WakeConsumer(world.context())

    async with standing(watch):
        called = await first(world, "tool.called")
        await first(world, "attempt.finished")
        await until(lambda: sent(world) == ["c1", "c2"])
        await world.write(asked(called, "c1"))
        await world.write(permitted("c1"))
        watch.nudge(AT)
        await until(lambda: sent(world) == ["c1", "c2", "c1"])
        await world.write(settled(called, "c1"), settled(called, "c2"))
        watch.nudge(AT)
        await until(lambda: not world.wakes)

    types = await world.types()
    assert types.count("execution.claimed") == 1
    assert types.count("step.ended") == 2


async def test_a_decline_is_why_it_rests_and_the_inbox_stays(world: World) -> None:
    """E-10: calls and step settled, no follow-up request, the reason told."""
    await parked(world, "c1", "c2")
    declined = InterruptRequested(declined="permission to run read (x) was declined")
    refused = PermissionReplied(request_id="per_c1", reply="reject")
    await world.write(admitted("msg_2", delivery="queue"))
    await world.write(refused, PermissionReplied(request_id="per_c2", reply="reject"), declined)

    await world.drained("run_b")

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
    await parked(world, "c1")
    await world.write(InterruptRequested())

    await world.drained("run_b")

    assert (await world.types())[-5:] == [
        "execution.claimed",
        "permission.replied",
        "tool.failed",
        "step.ended",
        "execution.released",
    ]
    assert (await world.session()).asks.permissions == {}


async def crashed(world: World) -> QuestionAsked:
    """A turn died with its runner, and the policy asks a person."""
    world.config["tenant"] = {"default": {"recovery": "ask"}}
    world.provider.replies.append(says("again"))
    await world.write(admitted("msg_1"), *LEFT, *PARTIAL)
    await world.drained("run_b")
    question = await first(world, "question.asked")
    assert isinstance(question, QuestionAsked)
    return question


async def test_a_crash_under_the_policy_ask_is_a_question(world: World) -> None:
    """P-01: held until it is answered; to go on is one of the answers."""
    question = await crashed(world)
    held = await world.session()
    answer = QuestionReplied(request_id=question.request.id, answers=(("Continue",),))

    assert (held.execution.rested, held.execution.owner, world.provider.requests) == (
        "held",
        None,
        [],
    )
    await world.drained("run_c")
    assert world.provider.requests == []
    await world.write(answer, ResumeRequested())
    await world.drained("run_c")
    assert (await world.session()).execution.rested == "idle"
    assert len(world.provider.requests) == 1


async def test_new_input_takes_the_question_back(world: World) -> None:
    """P-01: saying something else is an answer; no question is left behind."""
    question = await crashed(world)
    await world.write(admitted("msg_2", "never mind"))

    await world.drained("run_c")

    session, events = await world.session(), await world.events()
    assert QuestionRejected(request_id=question.request.id) in events
    assert (session.asks.questions, session.execution.rested) == ({}, "idle")


async def test_a_request_tells_what_its_sender_knows_as_long_as_nothing_else_counts(
    world: World,
) -> None:
    """E-01: the head it was true at, and the call. After a person's answer the worker reads."""
    called = await parked(world, "c1", "c2")
    c1, c2 = requests(world)
    assert c1.snapshot is not None
    assert c2.snapshot is not None
    page = await world.eventlog.log.read(AT, after=START)
    (heads,) = {
        stored.head
        for stored in page.commits
        if any(one.event.type == "attempt.finished" for one in stored.commit.events)
    }
    assert (c1.snapshot.position, c1.snapshot.seq) == (heads.position, heads.seq)
    assert (c1.snapshot.tool, c1.snapshot.input, c1.snapshot.runner) == (
        "read",
        {"path": "x"},
        "run_a",
    )

    await world.write(permitted("c1"))
    await world.wake()
    async with standing(WakeConsumer(world.context("run_b"))):
        await until(lambda: sent(world) == ["c1", "c2", "c1"])
        await world.write(settled(called, "c1"))
    assert requests(world)[2].snapshot is None


async def test_a_large_input_is_not_sent_beside_the_log(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-01: the worker finds it where it is."""
    monkeypatch.setattr("fairlead_runner.calls.requests.SNAPSHOT_LENGTH_MAX", 64)
    await parked(world, "c1")

    assert [request.snapshot for request in requests(world)] == [None]
