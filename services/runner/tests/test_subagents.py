"""Child sessions from the runner's side: the usage of children whose calls were settled without them."""

import json
import logging
from typing import Any

import pytest

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_runner.subagents import interrupt_children
from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.events import (
    AttemptDispatched,
    BudgetSet,
    ChildFinished,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    SessionEvent,
    StepEnded,
    StepStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
)
from fairlead_schema.record import RecordError, UnknownEvent
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.calls.child_ids import TASK, child_of
from services.runner.tests.conftest import AT, CREATED, World, admitted, events_of

MODEL = ModelRef(provider_id="acme", id="fast")
BELOW = Address("default", child_of("ses_1", "msg_a", "c1"))
MINE: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "c1"}
BEGUN: tuple[SessionEvent, ...] = (
    ExecutionClaimed(generation=1, runner="run_z"),
    AttemptDispatched(
        attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
    ),
    StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL),
)
ENDED = StepEnded(
    assistant_message_id="msg_a", finish="stop", cost=2.0, tokens=Tokens(input=60, output=40)
)
STOPPED = ExecutionReleased(generation=1, reason="interrupted")


@pytest.fixture(autouse=True)
async def _interrupted(world: World) -> None:
    """A session that may use one more USD, and whose call was settled without its sub-agent."""
    interrupted = ErrorInfo(message="Tool execution interrupted")
    await world.write(
        *BEGUN,
        ToolInputStarted(**MINE, name=TASK),
        ToolCalled(**MINE, tool=TASK, input={}, provider=Executor()),
        ToolFailed(**MINE, error=interrupted, provider=Executor()),
        ENDED.model_copy(update={"cost": 0.0}),
        STOPPED,
        BudgetSet(cost=1.0),
    )


async def child_usage(world: World) -> list[tuple[str, float, int]]:
    finished = events_of(await world.events(), ChildFinished)
    return [(child.session_id, child.cost, child.tokens) for child in finished]


async def test_what_an_interrupted_child_used_counts_before_the_next_call(world: World) -> None:
    """A budget covers the whole tree, and an interrupt does not lift it."""
    await world.write(CREATED, *BEGUN, ENDED, STOPPED, at=BELOW)
    await world.write(admitted("msg_2"))

    await world.drain()
    await world.drain()

    assert await child_usage(world) == [(BELOW.session_id, 2.0, 100)]
    assert (await world.session()).execution.rested == "over-budget"
    assert world.provider.requests == []


async def test_a_child_that_still_stops_is_counted_at_a_later_look(world: World) -> None:
    """The parent does not wait for the child, and counts it later."""
    await world.write(CREATED, *BEGUN, ENDED, at=BELOW)
    await world.prompt("msg_2", "hello")
    assert (await child_usage(world), len(world.provider.requests)) == ([], 1)

    await world.write(STOPPED, at=BELOW)
    await world.prompt("msg_3", "hello")

    assert await child_usage(world) == [(BELOW.session_id, 2.0, 100)]


async def test_a_child_that_was_never_made_is_looked_for_once(world: World) -> None:
    await world.prompt("msg_2", "hello")

    assert await child_usage(world) == [(BELOW.session_id, 0.0, 0)]
    assert len(world.provider.requests) == 1


async def test_a_child_that_cannot_be_read_holds_nobody_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-01: the usage of the child stays unknown, and its parent goes on."""
    read = world.log.read

    async def unreadable(
        at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        if at == BELOW:
            raise UnknownEvent("from.the.future", 9)
        return await read(at, after=after, limit=limit, reach=reach)

    monkeypatch.setattr(world.log, "read", unreadable)
    await world.prompt("msg_2", "hello")

    assert await child_usage(world) == [(BELOW.session_id, 0.0, 0)]
    assert (await world.session()).execution.rested == "idle"


UNAVAILABLE = {"error": ServiceUnavailable("no log", service="session.log").body.wire()}
BROKEN = {"error": LOG_REFUSALS[RecordError](UnknownEvent("new", 9)).body.wire()}


def answer_interrupts(world: World, *answers: object) -> list[str]:
    """Answer interrupts in turn, the last answer again and again; the list says who was interrupted."""
    interrupted, waiting = list[str](), list(answers)

    async def reply(body: bytes) -> bytes:
        interrupted.append(json.loads(body)["sessionID"])
        return json.dumps(waiting.pop(0) if len(waiting) > 1 else waiting[0]).encode()

    assert isinstance(world.eventlog.requests, MemoryRequests)
    world.eventlog.requests.answerers[subjects.api("default", "session.interrupt")] = reply
    return interrupted


async def call_child(world: World) -> None:
    """Let a call of a runner that died wait for a child."""
    ids: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "c2"}
    await world.write(
        ExecutionClaimed(generation=2, runner="run_dead"),
        ToolInputStarted(**ids, name=TASK),
        ToolCalled(**ids, tool=TASK, input={}, provider=Executor()),
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"data": {}}, "child session interrupted"),
        (
            {"error": SessionNotFound("ses_2").body.wire()},
            "child session not created yet: nothing to interrupt",
        ),
        (BROKEN, "child refused the interrupt: its parent stops alone"),
    ],
    ids=["taken", "not created", "broken"],
)
async def test_the_log_says_whether_a_child_took_the_interrupt(
    world: World, caplog: pytest.LogCaptureFixture, answer: object, message: str
) -> None:
    await call_child(world)
    answer_interrupts(world, answer)

    with caplog.at_level(logging.INFO):
        await interrupt_children(world.eventlog, AT, await world.session())

    assert message in caplog.messages


@pytest.mark.parametrize("first", [UNAVAILABLE, "no object"], ids=["unavailable", "no answer"])
async def test_a_parent_stops_only_after_its_child_was_told(world: World, first: object) -> None:
    """A9: an ingest that cannot write now is asked again, so no child works on without its parent."""
    world.shorten(log_retry_s=0.01)
    await call_child(world)
    await world.write(InterruptRequested())
    interrupted = answer_interrupts(world, first, first, {"data": {}})

    await world.drain()

    child = child_of("ses_1", "msg_a", "c2")
    assert interrupted == [child] * 3
    assert (await world.session()).execution.rested == "interrupted"
