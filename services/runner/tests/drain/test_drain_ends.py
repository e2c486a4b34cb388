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
    error_reply,
    run_consumer,
    stream_reply,
    text_reply,
    wait_until,
)
from services.runner.tests.tool_calls import call_reply, offer_tool, tool_succeeded, wait_for_event

SLOW = ModelRef(provider_id="acme", id="slow")


async def last_release(world: World) -> ExecutionReleased:
    """The last release."""
    return [event for event in await world.events() if isinstance(event, ExecutionReleased)][-1]


async def test_a_failed_drain_leaves_its_reason_in_the_log(world: World) -> None:
    """C-20, D-27, P-27: the reason is durable, and nobody owns the session."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(error_reply(400, "no such thing"))

    await world.drain()

    rest, session = await last_release(world), await world.session()
    assert rest.reason == "failed"
    assert "no such thing" in (rest.detail or "")
    assert (session.execution.owner, session.execution.rested) == (None, "failed")


async def test_everybody_who_asked_for_a_run_shares_its_failure_and_a_later_run_retries(
    world: World,
) -> None:
    """C-19, C-02: one attempt and one failure are in the log; a later resume takes the turn again."""
    events = resume(await world.session())
    assert events == (ResumeRequested(),)
    await world.write(*events)
    assert resume(await world.session()) == (), "the second one joins"
    world.provider.replies.append(error_reply(400, "no"))
    await world.drain()
    failures = [event for event in await world.events() if isinstance(event, StepFailed)]
    assert resume(await world.session()) == (ResumeRequested(),)

    await world.write(ResumeRequested())
    await world.drain()

    assert (len(failures), len(world.provider.requests)) == (1, 2)
    assert (await world.session()).execution.rested == "idle"


async def test_a_defect_releases_the_session_with_its_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-09, C-20: the defect comes before anything is written, and the session does not try again."""
    await world.write(admitted("msg_1"))
    monkeypatch.setattr("fairlead_runner.turn.boundary.dispatch", lambda *_, **__: 1 / 0)
    await world.wake()

    await world.redeliver_until_gone()

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
    """C-09, C-20: the owner was in the log; its release says why it gave up."""
    await world.write(admitted("msg_1"))
    monkeypatch.setattr("fairlead_runner.wake_handler.DEFECTS_MAX", 1)
    monkeypatch.setattr("fairlead_runner.turn.turn_runner.ProviderAttempt.run", lambda *_: 1 / 0)
    await world.wake()

    await world.redeliver_until_gone()

    rest, session = await last_release(world), await world.session()
    assert (session.execution.owner, rest.reason) == (None, "failed")
    assert "ZeroDivisionError" in (rest.detail or "")


async def test_a_move_before_the_boundary_is_seen_before_anything_is_promoted(
    world: World,
) -> None:
    """C-21: the drain drops what it prepared for the old location, and sends no request for it."""
    places: list[str] = []
    body = json.dumps({"data": ContextSample(observations=(DATE,)).wire()}).encode()

    async def note_place(question: bytes) -> bytes:
        places.append(json.loads(question)["location"]["directory"])
        return body

    world.answer(note_place)
    await world.write(admitted("msg_1"))
    moved = False

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal moved
        if not moved and any(isinstance(draft.event, PromptPromoted) for draft in drafts):
            moved = True
            await world.write(SessionMoved(location=LocationRef(directory="/there")))

    world.log.before = meanwhile

    await world.drain()

    types = await world.types()
    assert (places[0], places[-1]) == ("/w", "/there")
    assert types.index("moved") < types.index("prompt.promoted")
    assert types.count("prompt.promoted") == len(world.provider.requests) == 1


async def test_a_steer_that_comes_while_a_queued_input_opens_its_turn_joins_it(
    world: World,
) -> None:
    """B-14: one turn for both, the queued input first."""
    await world.write(admitted("msg_q", "queued", "queue"))
    arrived = False

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal arrived
        if not arrived and any(isinstance(draft.event, PromptPromoted) for draft in drafts):
            arrived = True
            await world.write(admitted("msg_1", "steered"))

    world.log.before = meanwhile

    await world.drain()

    texts = [text for role, text in world.provider.messages(0) if role == "user"]
    assert texts == ["queued", "steered"]
    assert len(world.provider.requests) == 1


async def test_a_model_switch_during_a_tool_holds_for_the_turn_that_follows(world: World) -> None:
    """E-05: agent and model are read again for each turn."""
    offer_tool(world)
    world.config["provider"]["acme"]["model"]["slow"] = {"id": "slow-1"}
    world.provider.replies.extend([call_reply("c1"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        called = await wait_for_event(world, "attempt.finished")
        await world.write(ModelSwitched(message_id="msg_m", model=SLOW))
        await world.write(tool_succeeded(called))
        await wait_until(lambda: not world.wakes)

    assert [request["model"] for request in world.provider.requests] == ["fast-1", "slow-1"]


async def test_many_writers_of_one_turn_are_one_after_the_other(world: World) -> None:
    """D-37: the events of the stream and of other writers have one order, each once."""
    offer_tool(world)
    world.provider.replies.extend([call_reply("c1", "c2", "c3"), text_reply("thanks")])
    await world.write(admitted("msg_1"))
    interruptions = 0

    async def meanwhile(drafts: tuple[Draft, ...]) -> None:
        nonlocal interruptions
        if interruptions < 8 and drafts[0].event.type.startswith(("step", "tool", "attempt")):
            interruptions += 1
            await world.write(SyntheticAdded(message_id=f"msg_n{interruptions}", text="meanwhile"))

    world.log.before = meanwhile
    await world.wake()
    async with run_consumer(WakeConsumer(world.context())):
        called = await wait_for_event(world, "attempt.finished")
        for id_ in ("c1", "c2", "c3"):
            await world.write(tool_succeeded(called, id_))
        await wait_until(lambda: not world.wakes)

    page = await world.log.read(AT, after=START)
    log = [recorded for stored in page.commits for recorded in stored.commit.events]
    assert verify(log) == []
    types = [recorded.event.type for recorded in log]
    assert (types.count("tool.succeeded"), types.count("step.ended"), bool(interruptions)) == (
        3,
        2,
        True,
    )


async def test_fragments_of_one_read_are_sent_together_and_the_end_holds_the_whole_text(
    world: World,
) -> None:
    """D-45, D-07: no fragment waits for a later read, and the end of the text holds all of them."""
    words = ["one ", "two ", "three ", "four"]
    frames = [json.dumps({"choices": [{"delta": {"content": word}}]}) for word in words]
    stop = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    world.provider.replies.append(stream_reply(*frames, stop, "[DONE]"))
    await world.write(admitted("msg_1"))

    await world.drain()

    assert isinstance(world.eventlog.deltas, MemoryDeltas)
    sent = [
        event.delta for _at, event in world.eventlog.deltas.sent if isinstance(event, TextDelta)
    ]
    (ended,) = [event for event in await world.events() if isinstance(event, TextEnded)]
    assert sent == ["".join(words)]
    assert ended.text == "".join(words)
