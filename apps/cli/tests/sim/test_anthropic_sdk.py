"""The official Anthropic client accepts the answers of the simulated provider."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import types
from pydantic import TypeAdapter

pytestmark = pytest.mark.integration

EVENT: TypeAdapter[Any] = TypeAdapter(types.RawMessageStreamEvent)
FULL = """[[sim: reasoning='Let me see.' search=cats found=page answer='Hello there'
    tool=read args='{"path":"a"}' tool=list ; answer=done]]"""


@pytest.fixture
async def client(sim_url: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=sim_url, api_key="k", max_retries=0) as sdk:
        yield sdk


async def ask(client: anthropic.AsyncAnthropic, text: str, model: str = "m") -> types.Message:
    message: types.MessageParam = {"role": "user", "content": text}
    return await client.messages.create(model=model, max_tokens=2000, messages=[message])


async def test_a_streamed_answer_is_the_one_in_one_piece(client: anthropic.AsyncAnthropic) -> None:
    message: types.MessageParam = {"role": "user", "content": FULL}

    complete_message = await ask(client, FULL)
    async with client.messages.stream(model="m", max_tokens=2000, messages=[message]) as stream:
        message_from_stream = await stream.get_final_message()

    kinds = [block.type for block in complete_message.content]
    assert kinds == [
        *("thinking", "server_tool_use", "web_search_tool_result", "text"),
        *("tool_use", "tool_use"),
    ]
    assert [block.model_dump(exclude_none=True) for block in without_ids(message_from_stream)] == [
        block.model_dump(exclude_none=True) for block in without_ids(complete_message)
    ]
    assert (message_from_stream.stop_reason, message_from_stream.usage.output_tokens) == (
        "tool_use",
        5,
    )


def without_ids(message: types.Message) -> list[Any]:
    """The blocks without their ids, which depend on the request and so on streaming."""
    return [block.model_copy(update={"id": "", "tool_use_id": ""}) for block in message.content]


@pytest.mark.parametrize("text", [FULL, "[[sim: run='1+1' found=2 answer=so finish=length]]"])
async def test_every_frame_is_of_the_official_type(
    client: anthropic.AsyncAnthropic, text: str
) -> None:
    message: types.MessageParam = {"role": "user", "content": text}
    stream = await client.messages.create(
        model="m", max_tokens=2000, messages=[message], stream=True
    )

    events = [event.model_dump(mode="json", exclude_unset=True) async for event in stream]

    frames = [EVENT.validate_python(event) for event in events if event["type"] != "ping"]
    assert frames[-1].type == "message_stop"


async def test_a_tool_loop_with_thinking_goes_on(client: anthropic.AsyncAnthropic) -> None:
    first = await ask(client, FULL)
    results: list[types.ToolResultBlockParam] = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in first.content
        if block.type == "tool_use"
    ]

    second = await client.messages.create(
        model="m",
        max_tokens=2000,
        thinking={"type": "enabled", "budget_tokens": 1024},
        messages=[
            {"role": "user", "content": FULL},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ],
    )

    assert [block.text for block in second.content if block.type == "text"] == ["done"]


async def test_altered_thinking_is_a_bad_request(client: anthropic.AsyncAnthropic) -> None:
    thought: types.ThinkingBlockParam = {"type": "thinking", "thinking": "hm", "signature": "no"}

    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await client.messages.create(
            model="m",
            max_tokens=20,
            messages=[
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [thought]},
                {"role": "user", "content": "hi"},
            ],
        )


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("error-400", anthropic.BadRequestError),
        ("error-401", anthropic.AuthenticationError),
        ("error-403", anthropic.PermissionDeniedError),
        ("error-404", anthropic.NotFoundError),
        ("error-429", anthropic.RateLimitError),
        ("error-500", anthropic.InternalServerError),
        ("error-529", anthropic.InternalServerError),
        ("overflow", anthropic.BadRequestError),
    ],
)
async def test_refusals_are_the_clients_own_errors(
    client: anthropic.AsyncAnthropic, model: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error) as error_info:
        await ask(client, "x", model)

    assert isinstance(error_info.value.body, dict)
    assert error_info.value.body["type"] == "error"
    if model == "error-429":
        assert error_info.value.response.headers["retry-after"] == "1"


async def test_an_error_inside_a_stream_is_raised(client: anthropic.AsyncAnthropic) -> None:
    message: types.MessageParam = {"role": "user", "content": "x"}

    async with client.messages.stream(model="fail", max_tokens=9, messages=[message]) as stream:
        with pytest.raises(anthropic.APIStatusError):
            await stream.until_done()
