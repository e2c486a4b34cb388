"""The official OpenAI client talks to the simulated provider, over Responses and over Chat."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import (
    Response,
    ResponseInputParam,
    ResponseReasoningItem,
    ResponseStreamEvent,
)
from pydantic import TypeAdapter

pytestmark = pytest.mark.integration

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
FULL = """[[sim: reasoning='Let me see.' search=cats run='1+1' found=2 answer='Hello there'
    tool=read args='{"path":"a"}' tool=list ; answer=done]]"""


@pytest.fixture
async def client(sim_url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{sim_url}/v1", api_key="k", max_retries=0) as sdk:
        yield sdk


def kinds(response: Response) -> list[str]:
    return [item.type for item in response.output]


async def test_a_streamed_response_is_the_one_in_one_piece(client: openai.AsyncOpenAI) -> None:
    complete_response = await client.responses.create(model="m", input=FULL)
    async with client.responses.stream(model="m", input=FULL) as stream:
        response_from_stream = await stream.get_final_response()

    assert kinds(complete_response) == [
        *("reasoning", "web_search_call", "code_interpreter_call", "message"),
        *("function_call", "function_call"),
    ]
    assert kinds(response_from_stream) == kinds(complete_response)
    assert response_from_stream.output_text == complete_response.output_text == "Hello there"
    assert response_from_stream.usage is not None
    assert response_from_stream.usage.output_tokens == 5


@pytest.mark.parametrize("text", [FULL, "[[sim: answer=so finish=length]]"])
async def test_every_frame_of_a_response_is_of_the_official_type(
    client: openai.AsyncOpenAI, text: str
) -> None:
    stream = await client.responses.create(model="m", input=text, stream=True)

    events = [event.model_dump(mode="json", exclude_unset=True) async for event in stream]

    frames = [EVENT.validate_python(event) for event in events]
    assert [event.sequence_number for event in frames] == list(range(len(frames)))
    assert frames[-1].type in {"response.completed", "response.incomplete"}


async def test_a_tool_loop_with_encrypted_reasoning_goes_on(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input=FULL)
    history: ResponseInputParam = [{"role": "user", "content": FULL}]
    history += [item.model_dump(exclude_unset=True) for item in first.output]  # type: ignore[misc]
    history += [
        {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
        for item in first.output
        if item.type == "function_call"
    ]

    second = await client.responses.create(model="m", input=history, store=False)

    thought = first.output[0]
    assert isinstance(thought, ResponseReasoningItem)
    assert thought.encrypted_content
    assert second.output_text == "done"


async def test_an_unknown_call_id_is_a_bad_request(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="No tool call found"):
        await client.responses.create(
            model="m", input=[{"type": "function_call_output", "call_id": "x", "output": "ok"}]
        )


ERRORS = [
    ("error-400", openai.BadRequestError),
    ("error-401", openai.AuthenticationError),
    ("error-404", openai.NotFoundError),
    ("error-429", openai.RateLimitError),
    ("error-500", openai.InternalServerError),
    ("error-529", openai.InternalServerError),
    ("overflow", openai.BadRequestError),
]


@pytest.mark.parametrize(("model", "error"), ERRORS)
async def test_refusals_are_the_clients_own_errors(
    client: openai.AsyncOpenAI, model: str, error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as response_error:
        await client.responses.create(model=model, input="x")
    with pytest.raises(error) as chat_error:
        await client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "x"}]
        )

    assert response_error.value.code == chat_error.value.code
    if model == "error-429":
        assert response_error.value.response.headers["retry-after"] == "1"


async def test_a_failure_inside_a_stream_is_told_or_raised(client: openai.AsyncOpenAI) -> None:
    stream = await client.responses.create(model="fail", input="x", stream=True)
    events = [EVENT.validate_python(event.model_dump(exclude_unset=True)) async for event in stream]
    chat = await client.chat.completions.create(
        model="fail", messages=[{"role": "user", "content": "x"}], stream=True
    )

    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    with pytest.raises(openai.APIError, match="broke off"):
        async for _ in chat:
            pass


async def test_a_chat_stream_accumulates_text_and_calls(client: openai.AsyncOpenAI) -> None:
    async with client.chat.completions.stream(
        model="m",
        messages=[{"role": "user", "content": FULL}],
        stream_options={"include_usage": True},
    ) as stream:
        final = await stream.get_final_completion()

    message = final.choices[0].message
    assert (message.content, final.choices[0].finish_reason) == ("Hello there", "tool_calls")
    calls = [call.function.arguments for call in message.tool_calls or ()]
    assert calls == ['{"path":"a"}', "{}"]
    assert final.usage is not None
    assert final.usage.completion_tokens == 5


async def test_every_chat_chunk_is_of_the_official_type(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": FULL}],
        stream=True,
        stream_options={"include_usage": True},
    )

    chunks = [chunk.model_dump(mode="json", exclude_unset=True) async for chunk in stream]

    assert all(ChatCompletionChunk.model_validate(chunk) for chunk in chunks)


async def test_a_chat_tool_loop_goes_on(client: openai.AsyncOpenAI) -> None:
    first = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": FULL}]
    )
    message = first.choices[0].message
    history: list[Any] = [{"role": "user", "content": FULL}, message.model_dump(exclude_none=True)]
    history += [
        {"role": "tool", "tool_call_id": call.id, "content": "ok"}
        for call in message.tool_calls or ()
    ]

    second = await client.chat.completions.create(model="m", messages=history)

    assert second.choices[0].message.content == "done"
