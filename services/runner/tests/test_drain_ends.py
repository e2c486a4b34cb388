"""How drains end and what they write in between: failures, defects, moves, switches, many writers."""

import json

import pytest

from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_eventlog.ports import START
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ContextSample
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import (
    ExecutionReleased,
    ModelSwitched,
    PromptPromoted,
    ResumeRequested,
    SessionMoved,
    StepFailed,
    SyntheticAdded,
    TextEnded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_session.execution.commands import resume
from fairlead_session.verify.verify import verify
from services.runner.tests.conftest import (
    AT,
    DATE,
    World,
    admitted,
    refuses,
    says,
    standing,
    streamed,
    until,
)
from services.runner.tests.test_moves import calls, first, offering, settled

SLOW = ModelRef(provider_id="acme", id="slow")


async def rested(world: World) -> ExecutionReleased:
    """The last release."""
    return [one for one in await world.events() if isinstance(one, ExecutionReleased)][-1]


async def test_a_failed_drain_leaves_its_reason_in_the_log(world: World) -> None:
    """C-20, D-27, P-27: durable, for whoever asks later; the owner is gone."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(refuses(400, "no such thing"))

    await world.drained()

    rest, session = await rested(world), await world.session()
    assert rest.reason == "failed"
    assert "no such thing" in (rest.detail or "")
    assert (session.execution.owner, session.execution.rested) == (None, "failed")


async def test_everybody_who_asked_for_a_run_shares_its_failure_and_a_later_run_retries(
    world: World,
) -> None:
    """C-19, C-02: one attempt, one failure in the log; asked again, the turn is made again."""
    asked = resume(await world.session())
    assert asked == ResumeRequested()
    await world.write(asked)
    assert resume(await world.session()) is None, "the second one joins"
    world.provider.replies.append(refuses(400, "no"))
    await world.drained()
    failures = [one for one in await world.events() if isinstance(one, StepFailed)]
    again = resume(await world.session())
    assert again is not None

    await world.write(again)
    await world.drained()

    assert (len(failures), len(world.provider.requests)) == (1, 2)
    assert (await world.session()).execution.rested == "idle"


async def test_a_defect_releases_the_session_with_its_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-09, C-20: it strikes before anything is written, and does not strike again by itself."""
    await world.write(admitted("msg_1"))
    monkeypatch.setattr("fairlead_runner.turn.boundary.dispatch", lambda *_, **__: 1 / 0)
    await world.wake()
    (job,) = world.wakes
    job.deliveries = 4

    async with standing(WakeConsumer(world.context())):
        await until(lambda: not world.wakes)

    session = await world.session()
    assert (
        session.execution.owner,
        session.execution.rested,
        session.execution.work_requested,
    ) == (None, "failed", False)
    assert "ZeroDivisionError" in (session.execution.rest_detail or "")
    assert [item.message_id for item in session.inbox.pending] == ["msg_1"]


async def test_a_defect_in_mid_turn_settles_what_is_open_and_rests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-09, C-20: the turn's owner was in the log; it says why it gave up."""
    await world.write(admitted("msg_1"))
    monkeypatch.setattr("fairlead_runner.turn.turn_runner.ProviderAttempt.run", lambda *_: 1 / 0)
    await world.wake()
    (job,) = world.wakes
    job.deliveries = 4

    async with standing(WakeConsumer(world.context())):
        await until(lambda: not world.wakes)

    rest, session = await rested(world), await world.session()
    assert (session.execution.owner, rest.reason) == (None, "failed")
    assert "ZeroDivisionError" in (rest.detail or "")


async def test_a_move_before_the_boundary_is_seen_before_anything_is_promoted(
    world: World,
) -> None:
    """C-21: what was prepared for the old place is thrown away, and no request leaves for it."""
    places: list[str] = []
    body = json.dumps({"data": ContextSample(observations=(DATE,)).wire()}).encode()

    async def observed(asked: bytes) -> bytes:
        places.append(json.loads(asked)["location"]["directory"])
        return body

    world.answer(observed)
    await world.write(admitted("msg_1"))
    moved = False

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal moved
        if not moved and any(isinstance(draft.event, PromptPromoted) for draft in drafts):
            moved = True
            await world.write(SessionMoved(location=LocationRef(directory="/there")))

    world.log.before = meanwhile

    await world.drained()

    types = await world.types()
    assert (places[0], places[-1]) == ("/w", "/there")
    assert types.index("moved") < types.index("prompt.promoted")
    assert types.count("prompt.promoted") == len(world.provider.requests) == 1


async def test_a_steer_that_comes_while_a_queued_input_opens_its_turn_joins_it(
    world: World,
) -> None:
    """B-14: one turn for both, the queued input first."""
    await world.write(admitted("msg_q", "queued", "queue"))
    came = False

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal came
        if not came and any(isinstance(draft.event, PromptPromoted) for draft in drafts):
            came = True
            await world.write(admitted("msg_1", "steered"))

    world.log.before = meanwhile

    await world.drained()

    said = [text for role, text in world.provider.asked(0) if role == "user"]
    assert said == ["queued", "steered"]
    assert len(world.provider.requests) == 1


async def test_a_model_switch_during_a_tool_holds_for_the_turn_that_follows(world: World) -> None:
    """E-05: agent and model are read again for each turn."""
    offering(world)
    world.config["provider"]["acme"]["model"]["slow"] = {"id": "slow-1"}
    world.provider.replies.extend([calls("c1"), says("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()

    async with standing(WakeConsumer(world.context())):
        called = await first(world, "attempt.finished")
        await world.write(ModelSwitched(message_id="msg_m", model=SLOW))
        await world.write(settled(called))
        await until(lambda: not world.wakes)

    assert [one["model"] for one in world.provider.requests] == ["fast-1", "slow-1"]


async def test_many_writers_of_one_turn_are_one_after_the_other(world: World) -> None:
    """D-37: the stream's facts and what others write land in one order, each once."""
    offering(world)
    world.provider.replies.extend([calls("c1", "c2", "c3"), says("thanks")])
    await world.write(admitted("msg_1"))
    disturbed = 0

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal disturbed
        if disturbed < 8 and drafts[0].event.type.startswith(("step", "tool", "attempt")):
            disturbed += 1
            await world.write(SyntheticAdded(message_id=f"msg_n{disturbed}", text="meanwhile"))

    world.log.before = meanwhile
    await world.wake()
    async with standing(WakeConsumer(world.context())):
        called = await first(world, "attempt.finished")
        for id_ in ("c1", "c2", "c3"):
            await world.write(settled(called, id_))
        await until(lambda: not world.wakes)

    page = await world.log.read(AT, after=START)
    log = [one for stored in page.commits for one in stored.commit.events]
    assert verify(log) == []
    types = [one.event.type for one in log]
    assert (types.count("tool.succeeded"), types.count("step.ended"), bool(disturbed)) == (
        3,
        2,
        True,
    )


async def test_each_fragment_is_sent_as_it_comes_and_together_they_are_the_text(
    world: World,
) -> None:
    """D-45, D-07: nothing is held back to be sent together, and the end holds all of it."""
    words = ["one ", "two ", "three ", "four"]
    frames = [json.dumps({"choices": [{"delta": {"content": word}}]}) for word in words]
    stop = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    world.provider.replies.append(streamed(*frames, stop, "[DONE]"))
    await world.write(admitted("msg_1"))

    await world.drained()

    assert isinstance(world.eventlog.deltas, MemoryDeltas)
    sent = [one.delta for _at, one in world.eventlog.deltas.sent if isinstance(one, TextDelta)]
    (ended,) = [one for one in await world.events() if isinstance(one, TextEnded)]
    assert sent == words
    assert ended.text == "".join(words)
