"""Ownership between runners: dead owners are recovered, live ones left alone, lost ones write nothing."""

import pytest
from starlette.responses import Response

from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_runner.drain.drain import Drain
from fairlead_runner.drain.staged_writer import OwnershipLost, StagedWriter
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AttemptDispatched,
    ContextInitialised,
    ExecutionClaimed,
    ExecutionRecovered,
    PromptPromoted,
    SessionEvent,
    StepFailed,
    StepStarted,
    TextStarted,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from services.runner.tests.conftest import (
    AT,
    World,
    admitted,
    answer_after_first_ping,
    run_consumer,
    text_reply,
    wait_until,
)

MODEL = ModelRef(provider_id="acme", id="fast")
CLAIMED = ExecutionClaimed(generation=1, runner="run_dead")
STOLEN = ExecutionClaimed(generation=2, runner="run_b")
LEFT: tuple[SessionEvent, ...] = (
    CLAIMED,
    ContextInitialised(baseline=(), snapshot={}),
    PromptPromoted(message_id="msg_1", prompt=Prompt(text="hello"), created=1),
    AttemptDispatched(
        attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
    ),
)
PARTIAL: tuple[SessionEvent, ...] = (
    StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL),
    TextStarted(assistant_message_id="msg_a", text_id="t"),
)


def mark_alive(world: World, runner: str) -> None:
    assert isinstance(world.eventlog.liveness, MemoryLiveness)
    world.eventlog.liveness.alive.add(runner)


async def open_drain(world: World, runner: str = "run_a") -> Drain:
    context = world.context(runner)
    writer = StagedWriter(AT, await context.sessions.load(AT), context.session_writer)
    return Drain(context, writer)


@pytest.mark.parametrize("output", [(), PARTIAL], ids=["no output", "partial output"])
async def test_a_dead_owners_turn_is_recovered_and_answered(
    world: World, output: tuple[SessionEvent, ...]
) -> None:
    """P-01: claimed, settled by what is durable, retried, answered; never promoted again."""
    await world.write(admitted("msg_1"), *LEFT, *output)

    await world.drain("run_b")

    events = await world.events()
    (recovered,) = [event for event in events if isinstance(event, ExecutionRecovered)]
    assert (recovered.attempt_id, recovered.action) == ("att_1", "retried")
    assert sum(isinstance(event, PromptPromoted) for event in events) == 1
    assert sum(isinstance(event, StepFailed) for event in events) == bool(output)
    assert (await world.types())[-4:] == [
        "text.started",
        "text.ended",
        "step.ended",
        "execution.released",
    ]
    assert (await world.session()).execution.generation == 2


async def test_a_silent_owner_is_taken_over_too(world: World) -> None:
    """P-02: an owner that does not answer has lost its wake already."""
    await world.write(admitted("msg_1"), CLAIMED)
    mark_alive(world, "run_dead")
    assert isinstance(world.eventlog.liveness, MemoryLiveness)
    world.eventlog.liveness.paused.add("run_dead")

    await world.drain("run_b")

    assert (await world.session()).execution.rested == "idle"


async def test_a_turn_that_kills_its_owners_is_held(world: World) -> None:
    """P-01, P-27: after too many recoveries the session rests with its reason, and no provider is called."""
    world.config["runner"] = {"recoveries_max": 1}
    await world.write(admitted("msg_1"), *LEFT)
    again = ExecutionRecovered(attempt_id="att_1", action="retried", detail="")
    await world.write(again, *LEFT[3:], again)

    await world.drain("run_b")

    assert (await world.session()).execution.rested == "held"
    assert world.provider.requests == []


async def test_a_live_owner_keeps_its_session_and_the_wake_is_put_back(world: World) -> None:
    """C-01, P-02: nothing is written, and the wake comes again later."""
    await world.write(admitted("msg_1"), CLAIMED)
    mark_alive(world, "run_dead")
    before = await world.types()
    await world.wake()
    (job,) = world.wakes

    async with run_consumer(WakeConsumer(world.context("run_b"))):
        await wait_until(lambda: job.deliveries >= 2)

    assert await world.types() == before
    assert world.wakes == [job]
    assert world.provider.requests == []


async def test_an_owner_that_reconnects_keeps_its_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7, P-02: after a restart of the NATS server a healthy owner misses a ping."""
    await world.write(admitted("msg_1"), CLAIMED)
    answer_after_first_ping(world, "run_dead", monkeypatch)

    assert await (await open_drain(world, "run_b")).run() is False

    assert (await world.types())[-1] == "execution.claimed"
    assert world.provider.requests == []


async def test_a_runner_fenced_during_its_turn_writes_nothing_more(world: World) -> None:
    """P-02: the answer of a stale owner never reaches the log."""
    await world.write(admitted("msg_1"))

    async def stolen() -> Response:
        await world.write(STOLEN)
        return text_reply("too late")

    world.provider.replies.append(stolen)

    with pytest.raises(OwnershipLost):
        await (await open_drain(world)).run()

    assert (await world.types())[-1] == "execution.claimed"
    assert (await world.session()).execution.generation == 2


async def test_a_runner_fenced_at_its_boundary_leaves_the_new_owner_alone(world: World) -> None:
    """P-02: the new owner lives, so the staged turn is dropped."""
    await world.write(admitted("msg_1"))
    mark_alive(world, "run_b")

    async def steal(_drafts: tuple[Draft, ...]) -> None:
        world.log.before = None
        await world.write(ExecutionClaimed(generation=1, runner="run_b"))

    world.log.before = steal

    assert await (await open_drain(world)).run() is False
    assert await world.types(after=2) == ["execution.claimed"]
    assert world.provider.requests == []


async def test_the_consumer_survives_a_fenced_drain(world: World) -> None:
    """P-02: the wake is not acknowledged, and the new owner answers."""
    await world.write(admitted("msg_1"))

    async def stolen() -> Response:
        await world.write(STOLEN)
        return text_reply("too late")

    world.provider.replies.append(stolen)
    await world.wake()
    (job,) = world.wakes
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: len(world.provider.requests) == 1)
    assert world.wakes == [job]

    job.expire()
    async with run_consumer(WakeConsumer(world.context("run_c"))):
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert (types.count("step.ended"), types.count("execution.recovered")) == (1, 1)
    assert await world.texts() == ["hello", ""]


async def test_one_runner_takes_a_redelivered_wake_once(world: World) -> None:
    """C-01: a second delivery of the wake starts no second drain."""
    await world.write(admitted("msg_1"))
    await world.wake()
    (job,) = world.wakes

    async def meanwhile() -> Response:
        job.expire()
        await wait_until(lambda: job.deliveries == 2)
        return text_reply("once")

    world.provider.replies.append(meanwhile)
    async with run_consumer(WakeConsumer(world.context())):
        await wait_until(lambda: not world.wakes)

    assert len(world.provider.requests) == 1
