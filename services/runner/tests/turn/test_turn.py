"""One provider turn: its request, its events, its end."""

import pytest

from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import ExecutionReleased, ResumeRequested, StepEnded, StepFailed
from fairlead_schema.message import AssistantMessage, TextBlock
from services.runner.tests.conftest import (
    SYSTEM,
    World,
    admitted,
    error_reply,
    stream_reply,
    text_reply,
)

ORDER = [
    "session.created",
    "prompt.admitted",
    "execution.claimed",
    "context.initialised",
    "prompt.promoted",
    "attempt.dispatched",
    "step.started",
    "text.started",
    "text.ended",
    "step.ended",
    "execution.released",
]


async def test_one_prompt_becomes_an_answer_in_the_exact_durable_order(world: World) -> None:
    """D-01, D-02: one streamed request; public events in order, private ones between them."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(text_reply("hey you"))

    await world.drain()

    assert await world.types() == ORDER
    assert len(world.provider.requests) == 1
    session = await world.session()
    answer = session.transcript.lines[-1].message
    assert isinstance(answer, AssistantMessage)
    assert answer.content == (TextBlock(id="text-0", text="hey you"),)
    assert (session.execution.owner, session.execution.rested) == (None, "idle")


async def test_the_request_says_who_asks_and_what_the_model_is_told(world: World) -> None:
    """D-38, F-46: agent system, baseline, history; the session's id in the headers."""
    await world.write(admitted("msg_1", "what day?"))

    await world.drain()

    assert world.provider.messages() == [
        ("system", SYSTEM),
        ("user", "what day?"),
    ]
    assert world.provider.requests[0]["model"] == "fast-1"
    assert world.provider.headers[0]["x-session-id"] == "ses_1"


async def test_fragments_are_live_and_not_in_the_log(world: World) -> None:
    """D-07: deltas are sent live, and the end of the text holds all of it."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(text_reply("hello"))

    await world.drain()

    assert isinstance(world.eventlog.deltas, MemoryDeltas)
    deltas = [delta for _at, delta in world.eventlog.deltas.sent]
    assert [delta.delta for delta in deltas if isinstance(delta, TextDelta)] == ["hello"]


async def test_a_turn_costs_what_its_model_costs(world: World) -> None:
    """D-34, D-35: tokens and cost come from usage and configuration."""
    await world.write(admitted("msg_1"))

    await world.drain()

    (ended,) = [event for event in await world.events() if isinstance(event, StepEnded)]
    assert (ended.tokens.input, ended.tokens.output) == (1_000_000, 1_000_000)
    assert ended.cost == pytest.approx(3.0)


async def test_a_raised_failure_fails_the_step_and_rests_the_session(world: World) -> None:
    """D-27, B-24: the failure is recorded with its message, and pending input stays pending."""
    await world.write(admitted("msg_1"), admitted("msg_q", delivery="queue"))
    world.provider.replies.append(error_reply(400, "bad request"))

    await world.drain()

    assert (await world.types())[-4:] == [
        "attempt.dispatched",
        "step.started",
        "step.failed",
        "execution.released",
    ]
    failed, released = (await world.events())[-2:]
    assert isinstance(failed, StepFailed)
    assert "bad request" in failed.error.message
    assert isinstance(released, ExecutionReleased)
    assert released.reason == "failed"
    assert [item.message_id for item in (await world.session()).inbox.pending] == ["msg_q"]
    assert len(world.provider.requests) == 1


async def test_after_a_raised_failure_a_later_wake_takes_what_is_pending(world: World) -> None:
    """B-23, B-24: the failed prompt is not retried, the pending one is answered."""
    await world.write(admitted("msg_1", "one"), admitted("msg_q", "two", "queue"))
    world.provider.replies.append(error_reply(400, "no"))
    await world.drain()

    await world.write(ResumeRequested(forced=False))
    await world.drain()

    assert world.provider.messages()[-1] == ("user", "two")
    assert (await world.session()).inbox.pending == ()
    assert (await world.session()).execution.rested == "idle"


async def test_an_error_inside_the_stream_ends_the_turn_but_not_the_drain(world: World) -> None:
    """B-24, D-25: the step fails and queued input is still processed."""
    await world.write(admitted("msg_1"), admitted("msg_q", delivery="queue"))
    partial = '{"choices": [{"delta": {"content": "par"}}]}'
    world.provider.replies.append(stream_reply(partial, '{"error": {"message": "overloaded"}}'))

    await world.drain()

    types = await world.types()
    assert types.count("step.failed") == types.count("step.ended") == 1
    assert types.index("text.ended") < types.index("step.failed")
    assert (await world.session()).inbox.pending == ()
    assert len(world.provider.requests) == 2


async def test_a_stream_cut_off_keeps_what_was_said(world: World) -> None:
    """D-10: the partial text is closed durably, then the step fails."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(stream_reply('{"choices": [{"delta": {"content": "par"}}]}'))

    await world.drain()

    assert (await world.types())[-4:] == [
        "text.started",
        "text.ended",
        "step.failed",
        "execution.released",
    ]
    answer = (await world.session()).transcript.lines[-1].message
    assert isinstance(answer, AssistantMessage)
    assert answer.content == (TextBlock(id="text-0", text="par"),)


async def test_an_empty_answer_is_an_empty_assistant(world: World) -> None:
    """D-05: a finish alone starts and ends the step."""
    await world.write(admitted("msg_1"))
    world.provider.replies.append(stream_reply("[DONE]"))

    await world.drain()

    assert (await world.types())[-3:] == ["step.started", "step.ended", "execution.released"]


@pytest.mark.parametrize(
    "change",
    [
        {"default_model": None, "provider": {"acme": {"model": {}}}},
        {"provider": {"acme": {"api_key_env": "FAIRLEAD_TEST_NO_KEY"}}},
    ],
    ids=["no model", "no key"],
)
async def test_without_a_configured_model_nothing_is_promoted(
    world: World, change: dict[str, object]
) -> None:
    """D-41, P-27: the session rests as failed and the input stays."""
    await world.write(admitted("msg_1"))
    provider = change.pop("provider", None)
    world.config.update(change)
    if isinstance(provider, dict):
        world.config["provider"]["acme"].update(provider["acme"])

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("failed", 1)
    assert world.provider.requests == []


async def test_a_long_prompt_costs_what_its_tier_says(world: World) -> None:
    """D-35: the provider's count of the prompt decides which prices the step has."""
    tier = {"context": 200_000, "input": 10, "output": 20}
    world.config["provider"]["acme"]["model"]["fast"]["cost"]["tier"] = [tier]
    await world.write(admitted("msg_1"))

    await world.drain()

    (ended,) = [event for event in await world.events() if isinstance(event, StepEnded)]
    assert ended.cost == pytest.approx(30.0)
