"""Structured output of one prompt: asked for, judged with the end of its step, repaired, or failed."""

import json
from typing import Any

import pytest
from starlette.responses import Response

from fairlead_schema.events import (
    PromptAdmitted,
    SessionEvent,
    StepEnded,
    ToolCalled,
    ToolStarted,
)
from fairlead_schema.message import AssistantMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.provider.structured_output import OUTPUT_INVALID
from fairlead_session.input.result import find_result
from fairlead_session.structured.contract import OUTPUT_TOOL
from services.runner.tests.conftest import (
    World,
    admitted,
    error_reply,
    events_of,
    stream_reply,
    text_reply,
)
from services.runner.tests.turn.test_prompt_options import offer_tools, offered

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"port": {"type": "string"}},
    "required": ["port"],
}
GOOD = '{"port":"Bergen"}'
BAD = '{"port":7}'


@pytest.fixture
async def asked(world: World) -> World:
    """A world whose session was asked for an answer with a schema."""
    await world.eventlog.status.finalise(2)
    prompt = Prompt.model_validate({"text": "Which port?", "schema": SCHEMA})
    await world.write(PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer"))
    return world


def gives(arguments: str) -> Response:
    function = {"name": OUTPUT_TOOL, "arguments": arguments}
    call = {"index": 0, "id": "call_1", "function": function}
    chunks: tuple[dict[str, object], ...] = (
        {"choices": [{"delta": {"tool_calls": [call]}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    )
    return stream_reply(*(json.dumps(chunk) for chunk in chunks), "[DONE]")


def statuses(events: list[SessionEvent]) -> list[str | None]:
    ended = events_of(events, StepEnded)
    return [event.output.status if event.output else None for event in ended]


async def test_a_forced_tool_gives_the_answer_and_no_worker_runs_it(asked: World) -> None:
    """P-17: the protocol has no mode of its own by default, so a tool takes the answer."""
    asked.provider.replies.append(gives(GOOD))

    await asked.drain()

    request = asked.provider.requests[0]
    assert offered(asked) == [OUTPUT_TOOL]
    assert request["tool_choice"] == {"type": "function", "function": {"name": OUTPUT_TOOL}}
    assert request["tools"][0]["function"]["parameters"] == SCHEMA
    events = await asked.events()
    assert statuses(events) == ["accepted"]
    assert (len(events_of(events, ToolCalled)), events_of(events, ToolStarted)) == (1, [])
    session = await asked.session()
    assert session.execution.rested == "idle"
    result = find_result(session, "msg_1")
    assert result is not None
    assert result.output is not None
    assert result.output.value == {"port": "Bergen"}


async def test_the_next_prompt_is_answered_freely(asked: World) -> None:
    """P-17: the schema ends with its answer."""
    asked.provider.replies.extend([gives(GOOD), text_reply("Hello!")])
    await asked.drain()
    await asked.write(admitted("msg_2"))
    await asked.drain()

    assert "tools" not in asked.provider.requests[1]
    answer = (await asked.session()).transcript.lines[-1].message
    assert isinstance(answer, AssistantMessage)
    assert (answer.output, answer.finish) == (None, "stop")


async def test_a_native_mode_sends_the_schema_and_takes_the_text(asked: World) -> None:
    """P-17: configured for a model; tools stay as they are, and so does the cached prefix."""
    asked.config["provider"]["acme"]["model"]["fast"]["structured_output"] = "native"
    offer_tools(asked)
    asked.provider.replies.extend([text_reply(BAD), text_reply(GOOD)])

    await asked.drain()

    first, second = asked.provider.requests
    assert first["response_format"]["json_schema"]["schema"] == SCHEMA
    assert offered(asked) == ["bash", "read"]
    assert "7 is not of type 'string'" in second["messages"][-1]["content"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert statuses(await asked.events()) == ["rejected", "accepted"]


async def test_after_two_repairs_the_prompt_has_failed(asked: World) -> None:
    """P-17: the failure has a code, its tokens are counted, and later prompts run."""
    asked.provider.replies.extend([gives(BAD), text_reply("Bergen."), gives("[]")])
    await asked.drain()

    events = await asked.events()
    assert statuses(events) == ["rejected", "rejected", "failed"]
    session = await asked.session()
    result = find_result(session, "msg_1")
    assert result is not None
    assert result.answer is not None
    assert result.answer.error is not None
    assert result.answer.error.code == OUTPUT_INVALID
    assert session.usage.tokens.output > 0
    await asked.prompt("msg_2", "and now?")
    assert len(asked.provider.requests) == 4


async def test_a_retry_of_the_request_keeps_the_contract(asked: World) -> None:
    """P-17: the provider failed before any output; the same answer is asked for again."""
    asked.config["runner"] = {"retry_base_s": 0}
    asked.provider.replies.extend([error_reply(503, "busy"), gives(GOOD)])

    await asked.drain()

    assert [offered(asked, turn) for turn in (0, 1)] == [[OUTPUT_TOOL], [OUTPUT_TOOL]]
    assert statuses(await asked.events()) == ["accepted"]
