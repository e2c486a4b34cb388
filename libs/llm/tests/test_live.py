"""A short turn with each real provider. A test runs only if its key is set."""

import os
from typing import Any

import httpx
import pytest

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_schema.provider.events import StepFinish, TextChunk, ToolCall
from fairlead_schema.provider.request import (
    AssistantTurn,
    ForcedTool,
    Generation,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    UserTurn,
)

pytestmark = pytest.mark.integration

PROVIDERS = [
    ("anthropic-messages", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "claude-haiku-4-5"),
    ("openai-responses", "https://api.openai.com", "OPENAI_API_KEY", "gpt-4.1-mini"),
    ("openai-chat", "https://api.openai.com", "OPENAI_API_KEY", "gpt-4.1-mini"),
    ("gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "gemini-2.5-flash"),
]
LIVE = [
    pytest.param(
        *provider,
        id=provider[0],
        marks=pytest.mark.skipif(
            not os.environ.get(provider[2]), reason=f"{provider[2]} is not set"
        ),
    )
    for provider in PROVIDERS
]
# Thinking counts against the output limit, and would leave no tokens for an answer.
OPTIONS: dict[str, dict[str, Any]] = {
    "gemini": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}
}
WEATHER = ToolDefinition(
    "get_weather",
    "Get the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


QUESTION = UserTurn((TextPart("What is the weather in Paris? Answer in one sentence."),))


async def play(
    protocol: str,
    url: str,
    key: str,
    model: str,
    **fields: Any,  # noqa: ANN401 - request fields
) -> list[Any]:
    endpoint = ProviderEndpoint(protocol, url, os.environ[key], first_byte_s=60, idle_s=60)
    fields = {"options": OPTIONS.get(protocol, {}), "turns": (QUESTION,)} | fields
    request = ModelRequest(model, generation=Generation(max_tokens=500), **fields)
    async with httpx.AsyncClient() as client:
        return [event async for event in stream(client, endpoint, request)]


@pytest.mark.parametrize(("protocol", "url", "key", "model"), LIVE)
async def test_a_real_provider_answers_with_text_and_usage(
    protocol: str, url: str, key: str, model: str
) -> None:
    events = await play(protocol, url, key, model)

    end = events[-1]
    assert isinstance(end, StepFinish), end
    assert end.usage.input
    assert any(isinstance(event, TextChunk) for event in events)


@pytest.mark.parametrize(("protocol", "url", "key", "model"), LIVE)
async def test_a_real_provider_calls_a_tool(protocol: str, url: str, key: str, model: str) -> None:
    choice = ForcedTool("get_weather")

    events = await play(protocol, url, key, model, tools=(WEATHER,), tool_choice=choice)

    calls = [event for event in events if isinstance(event, ToolCall)]
    assert calls, events[-1]
    call = calls[0]
    assert (call.name, call.invalid) == ("get_weather", None)
    assert "Paris" in str(call.input)
    assert getattr(events[-1], "finish", None) == "tool-calls"


@pytest.mark.parametrize(("protocol", "url", "key", "model"), LIVE)
async def test_a_real_provider_goes_on_from_a_result_and_from_words_begun_for_it(
    protocol: str, url: str, key: str, model: str
) -> None:
    """E-23: the shape of a final step, after a tool loop and without tools."""
    call = ToolCallPart("call_weather_1", "get_weather", {"city": "Paris"})
    result = ToolResultPart("call_weather_1", "get_weather", "text", "22 degrees, sunny")
    last_words = AssistantTurn((TextPart("This is the last step I may take."),))
    turns = (QUESTION, AssistantTurn((call,)), ToolTurn(result), last_words)

    events = await play(protocol, url, key, model, turns=turns, tool_choice="none")

    assert isinstance(events[-1], StepFinish), events[-1]
    assert "22" in "".join(event.text for event in events if isinstance(event, TextChunk))
