"""Overflow: before any output, a prompt that does not fit is compacted and sent again, once."""

import json

from fairlead_schema.events import (
    CompactionEnded,
    CompactionStarted,
    StepFailed,
)
from services.runner.tests.conftest import (
    LONG,
    World,
    error_reply,
    events_of,
    stream_reply,
    text_reply,
)

TOO_LONG = error_reply(400, "prompt is too long: 9000 tokens")


async def test_with_the_setting_off_only_an_overflow_compacts(small: World) -> None:
    """G-06, G-30, G-31: whatever the estimate says."""
    small.config["compaction"]["auto"] = False
    await small.prompt("msg_1", LONG)
    await small.prompt("msg_2", LONG)
    assert events_of(await small.events(), CompactionStarted) == []
    small.provider.replies.extend([TOO_LONG, text_reply("SUMMARY"), text_reply("onward")])

    await small.prompt("msg_3", "Where to?")

    types = await small.types()
    at = types.index("attempt.overflowed")
    assert types[at : at + 6] == [
        "attempt.overflowed",
        "compaction.started",
        "compaction.used",
        "compaction.ended",
        "context.replaced",
        "attempt.dispatched",
    ]
    assert (await small.texts())[-1] == ""
    assert events_of(await small.events(), StepFailed) == []
    assert "Where to?" in small.provider.messages()[-1][1]


async def test_without_a_known_window_an_overflow_is_a_plain_failure(world: World) -> None:
    """G-07."""
    await world.prompt("msg_1", LONG)
    world.provider.replies.append(TOO_LONG)

    await world.prompt("msg_2", LONG)

    assert events_of(await world.events(), CompactionStarted) == []
    (failed,) = events_of(await world.events(), StepFailed)
    assert failed.error.message.startswith("prompt is too long")


async def test_a_second_overflow_is_terminal(small: World) -> None:
    """G-32: its error says that a compaction did not help."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.extend([TOO_LONG, text_reply("SUMMARY"), TOO_LONG])

    await small.prompt("msg_2", "Where to?")

    (failed,) = events_of(await small.events(), StepFailed)
    assert "even after a compaction: prompt is too long" in failed.error.message
    assert len(events_of(await small.events(), CompactionStarted)) == 1
    assert (await small.session()).execution.rested == "failed"


async def test_if_the_summary_fails_the_overflow_itself_is_recorded(small: World) -> None:
    """G-33: in the provider's words."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.extend([TOO_LONG, error_reply(500, "broken")])

    await small.prompt("msg_2", "Where to?")

    events = await small.events()
    (failed,) = events_of(events, StepFailed)
    assert failed.error.message == "prompt is too long: 9000 tokens"
    assert events_of(events, CompactionEnded) == []
    assert (await small.session()).execution.rested == "failed"


async def test_an_overflow_with_nothing_to_compact_is_recorded_at_once(small: World) -> None:
    """G-10, G-33."""
    small.provider.replies.append(TOO_LONG)

    await small.prompt("msg_1", "short")

    (failed,) = events_of(await small.events(), StepFailed)
    assert failed.error.message == "prompt is too long: 9000 tokens"
    assert events_of(await small.events(), CompactionStarted) == []


OVERFLOW_FRAME = json.dumps(
    {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}
)
WORDS = json.dumps({"choices": [{"delta": {"content": "hey"}}]})


async def test_an_overflow_inside_the_stream_is_held_back_while_it_can_be_helped(
    small: World,
) -> None:
    """G-30, G-36: nothing of the refused attempt is published."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.extend(
        [stream_reply(OVERFLOW_FRAME), text_reply("SUMMARY"), text_reply("onward")]
    )

    await small.prompt("msg_2", "Where to?")

    events = await small.events()
    assert events_of(events, StepFailed) == []
    assert len(events_of(events, CompactionEnded)) == 1
    assert (await small.types()).count("step.started") == 2


async def test_an_overflow_after_output_is_a_plain_failure(small: World) -> None:
    """G-35: the output stays."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(stream_reply(WORDS, OVERFLOW_FRAME))

    await small.prompt("msg_2", "Where to?")

    events = await small.events()
    assert events_of(events, CompactionStarted) == []
    assert len(events_of(events, StepFailed)) == 1
    answer = (await small.session()).transcript.lines[-1].message
    assert answer.type == "assistant"
    assert [block.text for block in answer.content if block.type == "text"] == ["hey"]
