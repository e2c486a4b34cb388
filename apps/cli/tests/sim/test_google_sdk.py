"""The official Google client talks to the simulated provider over generateContent."""

import warnings
from collections.abc import AsyncIterator

import httpx
import orjson
import pytest

# Compiling the client warns of its own escape sequences, and warnings are errors here.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import errors, types

pytestmark = [
    pytest.mark.integration,
    # The client uses aiohttp in a way that aiohttp advises against.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

FULL = """[[sim: reasoning='Let me see.' run='1+1' found=2 answer='Hello there'
    tool=read args='{"path":"a"}' tool=list ; answer=done]]"""


@pytest.fixture
async def client(sim_url: str) -> AsyncIterator[genai.Client]:
    sdk = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=sim_url))
    yield sdk
    await sdk.aio.aclose()
    sdk.close()


async def ask(
    client: genai.Client, contents: types.ContentListUnion, model: str = "m"
) -> types.GenerateContentResponse:
    return await client.aio.models.generate_content(model=model, contents=contents)


def parts_of(answer: types.GenerateContentResponse) -> list[types.Part]:
    assert answer.candidates is not None
    content = answer.candidates[0].content
    return list(content.parts or []) if content is not None else []


def kind(part: types.Part) -> str:
    fields = part.model_dump(exclude_none=True).keys() - {"thought", "thought_signature"}
    return f"thought {min(fields)}" if part.thought else min(fields)


async def test_a_streamed_answer_is_the_one_in_one_piece(client: genai.Client) -> None:
    complete_answer = await ask(client, FULL)
    stream = await client.aio.models.generate_content_stream(model="m", contents=FULL)
    chunks = [chunk async for chunk in stream]

    assert [kind(part) for part in parts_of(complete_answer)] == [
        *("thought text", "executable_code", "code_execution_result", "text"),
        *("function_call", "function_call"),
    ]
    parts = [part for chunk in chunks for part in parts_of(chunk)]
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = [part.function_call for part in parts if part.function_call]
    assert (text, [call.args for call in calls]) == ("Hello there", [{"path": "a"}, {}])
    last = chunks[-1]
    assert last.candidates is not None
    assert last.candidates[0].finish_reason == types.FinishReason.STOP
    assert last.usage_metadata is not None
    assert last.usage_metadata.thoughts_token_count == 3


async def test_every_frame_is_of_the_official_type(sim_url: str) -> None:
    url = f"{sim_url}/v1beta/models/m:streamGenerateContent?alt=sse"
    body = {"contents": [{"role": "user", "parts": [{"text": f"{FULL} [[sim: search=cats]]"}]}]}
    async with httpx.AsyncClient(trust_env=False) as plain:
        answer = await plain.post(url, json=body)

    frames = [
        orjson.loads(frame.removeprefix("data: ")) for frame in answer.text.split("\r\n\r\n")[:-1]
    ]

    # The client's types forbid unknown fields: a misspelt one is refused.
    responses = [types.GenerateContentResponse.model_validate(frame) for frame in frames]
    assert responses[-1].candidates is not None
    assert responses[-1].candidates[0].grounding_metadata is not None


@pytest.mark.parametrize("model", ["m", "gemini-3-pro"])
async def test_a_tool_loop_with_signatures_goes_on(client: genai.Client, model: str) -> None:
    first = await ask(client, FULL, model)
    assert first.candidates is not None
    content = first.candidates[0].content
    assert content is not None
    answers = [
        types.Part.from_function_response(
            name=part.function_call.name or "", response={"output": 1}
        )
        for part in parts_of(first)
        if part.function_call
    ]
    prompt = types.Content(role="user", parts=[types.Part(text=FULL)])

    second = await ask(client, [prompt, content, types.Content(role="user", parts=answers)], model)

    assert second.text == "done"


async def test_a_response_without_its_call_is_a_bad_request(client: genai.Client) -> None:
    answer = types.Part.from_function_response(name="read", response={"output": "ok"})

    with pytest.raises(errors.ClientError, match="immediately after") as error_info:
        await ask(client, [types.Content(role="user", parts=[answer])])

    assert (error_info.value.code, error_info.value.status) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("model", "code", "status", "error"),
    [
        ("error-400", 400, "INVALID_ARGUMENT", errors.ClientError),
        ("error-403", 403, "PERMISSION_DENIED", errors.ClientError),
        ("error-429", 429, "RESOURCE_EXHAUSTED", errors.ClientError),
        ("error-500", 500, "INTERNAL", errors.ServerError),
        ("error-503", 503, "UNAVAILABLE", errors.ServerError),
        ("overflow", 400, "INVALID_ARGUMENT", errors.ClientError),
    ],
)
async def test_refusals_are_the_clients_own_errors(
    client: genai.Client, model: str, code: int, status: str, error: type[errors.APIError]
) -> None:
    with pytest.raises(error) as error_info:
        await ask(client, "x", model)

    assert (error_info.value.code, error_info.value.status) == (code, status)
    if model == "error-429":
        assert '"retryDelay": "1s"' in orjson.dumps(error_info.value.details).decode().replace(
            ":", ": "
        )


async def test_an_answer_cut_by_its_filter_says_so(client: genai.Client) -> None:
    answer = await ask(client, "x", "filter")

    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason == types.FinishReason.SAFETY
