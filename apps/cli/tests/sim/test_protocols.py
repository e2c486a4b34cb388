"""Every protocol against the simulated provider: the same script gives the same turn."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from fairlead_cli.sim.app import SimSettings
from fairlead_cli.sim.scenario import parse_scenarios
from fairlead_cli.sim.script import filler_text
from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_llm.protocol import PROTOCOLS
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ReasoningChunk,
    ReasoningEnd,
    StepFinish,
    TextChunk,
    ToolCall,
    ToolResult,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

pytestmark = [pytest.mark.integration, pytest.mark.parametrize("protocol", sorted(PROTOCOLS))]

READ = ToolDefinition("read", "Read a file.", {"type": "object", "properties": {"path": {}}})
# These protocols sign reasoning, and refuse it when it was altered.
SIGNED = {"anthropic-messages", "openai-responses"}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as http:
        yield http


class Conversation:
    """Sends requests of one protocol to the simulated provider."""

    def __init__(self, client: httpx.AsyncClient, url: str, protocol: str) -> None:
        self._client = client
        self._endpoint = ProviderEndpoint(protocol, url)

    async def send(self, *turns: Turn, model: str = "m", idle_s: float = 5) -> list[ProviderEvent]:
        headers = {"X-Session-Id": "ses_1"}
        request = ModelRequest(model, ("be brief",), turns, (READ,), headers=headers)
        endpoint = replace(self._endpoint, idle_s=idle_s)
        return [event async for event in stream(self._client, endpoint, request)]

    async def ask(self, text: str, model: str = "m", idle_s: float = 5) -> list[ProviderEvent]:
        return await self.send(user(text), model=model, idle_s=idle_s)

    async def failure(self, text: str, model: str = "m", idle_s: float = 5) -> ProviderFailure:
        last = (await self.ask(text, model, idle_s))[-1]
        assert isinstance(last, ProviderFailure)
        return last


@pytest.fixture
def conversation(client: httpx.AsyncClient, sim_url: str, protocol: str) -> Conversation:
    return Conversation(client, sim_url, protocol)


def user(text: str) -> UserTurn:
    return UserTurn((TextPart(text),))


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextChunk))


def calls_of(events: list[ProviderEvent]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall) and not event.executed]


def assistant_turn(events: list[ProviderEvent]) -> AssistantTurn:
    """The turn as a session stores it, with its parts in the order of arrival."""
    parts: list[TextPart | ReasoningPart | ToolCallPart | ToolResultPart] = []
    reasoning = ""
    for event in events:
        match event:
            case ReasoningChunk(text=text):
                reasoning += text
            case ReasoningEnd(metadata=metadata):
                parts.append(ReasoningPart(reasoning, metadata))
                reasoning = ""
            case ToolCall():
                fields = (event.id, event.name, event.input, event.executed, event.metadata)
                parts.append(ToolCallPart(*fields))
            case ToolResult():
                parts.append(ToolResultPart(event.id, "", "json", event.value, event.metadata))
            case _:
                pass
    text = text_of(events)
    calls = [part for part in parts if isinstance(part, ToolCallPart) and not part.executed]
    before = [part for part in parts if part not in calls]
    return AssistantTurn((*before, *((TextPart(text),) if text else ()), *calls))


def forge(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value with its signatures altered."""
    match value:
        case dict():
            return {name: _forge_signature(name, value_) for name, value_ in value.items()}
        case _:
            return value


def _forge_signature(name: str, value_: Any) -> Any:  # noqa: ANN401 - any JSON value
    return "AAAA" if name in {"signature", "encrypted_content"} else forge(value_)


async def test_text_and_usage(conversation: Conversation, protocol: str) -> None:
    events = await conversation.ask(
        "[[sim: answer='a b c' input_tokens=9 output_tokens=5 cached_tokens=4]]"
    )

    end = events[-1]
    assert isinstance(end, StepFinish)
    assert (text_of(events), end.finish) == ("a b c", "stop")
    usage = end.usage
    assert (usage.input, usage.cache_read, usage.output) == (5, 4, 5), protocol


async def test_a_tool_loop_with_reasoning_runs_to_its_end(
    conversation: Conversation, protocol: str
) -> None:
    prompt = user(
        """[[sim: reasoning='Let me see.' tool=read args='{"path":"a"}' tool=read args='{}'
        ; reasoning='So.' answer=done ]]"""
    )

    first = await conversation.send(prompt)
    calls = calls_of(first)
    results = (ToolTurn(ToolResultPart(call.id, call.name, "text", "ok")) for call in calls)
    loop: tuple[Turn, ...] = (prompt, assistant_turn(first), *results, SystemTurn("It is Monday."))
    second = await conversation.send(*loop)
    third = await conversation.send(*loop, assistant_turn(second), user("hello"))

    assert [call.input for call in calls] == [{"path": "a"}, {}]
    assert len({call.id for call in calls}) == 2
    assert getattr(first[-1], "finish", None) == "tool-calls"
    assert (text_of(second), text_of(third)) == ("done", "You said: hello"), protocol


async def test_reasoning_that_was_altered_is_refused(
    conversation: Conversation, protocol: str
) -> None:
    if protocol not in SIGNED:
        pytest.skip(f"{protocol} does not sign the text of reasoning")
    first = assistant_turn(await conversation.ask("[[sim: reasoning=hm answer=yes]]"))
    thought = first.content[0]
    assert isinstance(thought, ReasoningPart)
    assert thought.metadata is not None
    forged_turn = AssistantTurn(
        (replace(thought, metadata=forge(thought.metadata)), *first.content[1:])
    )

    genuine_events = await conversation.send(user("a"), first, user("b"))
    forged_events = await conversation.send(user("a"), forged_turn, user("b"))

    assert text_of(genuine_events) == "You said: b"
    assert getattr(forged_events[-1], "kind", None) == "invalid-request"


@pytest.mark.parametrize("directive", ["search=cats found=page", "run='1+1' found=2"])
async def test_hosted_tools_come_back_with_the_history(
    conversation: Conversation, protocol: str, directive: str
) -> None:
    first = await conversation.ask(f"[[sim: {directive} answer=so]]")
    second = await conversation.send(user("a"), assistant_turn(first), user("b"))

    calls = [event for event in first if isinstance(event, ToolCall) and event.executed]
    results = [event.id for event in first if isinstance(event, ToolResult)]
    assert [call.id for call in calls] == results
    assert calls or protocol in {"openai-chat", "gemini"}
    assert (text_of(first), text_of(second)) == ("so", "You said: b")


async def test_a_long_stream_arrives_whole(conversation: Conversation, protocol: str) -> None:
    events = await conversation.ask("[[sim: chunks=2000]]")

    assert text_of(events) == filler_text(2000), protocol


@pytest.mark.parametrize(("model", "finish"), [("length", "length"), ("filter", "content-filter")])
async def test_other_ends_are_told(
    conversation: Conversation, protocol: str, model: str, finish: str
) -> None:
    assert getattr((await conversation.ask("x", model))[-1], "finish", None) == finish, protocol


@pytest.mark.parametrize(
    ("model", "kind", "retryable"),
    [
        ("error-400", "invalid-request", False),
        ("error-401", "auth", False),
        ("error-429", "rate-limit", True),
        ("error-500", "server-error", True),
        ("error-503", "overloaded", True),
        ("error-529", "overloaded", True),
        ("overflow", "context-overflow", False),
    ],
)
async def test_a_refusal_is_one_failure(
    conversation: Conversation, protocol: str, model: str, kind: str, *, retryable: bool
) -> None:
    (failure,) = await conversation.ask("x", model)

    assert isinstance(failure, ProviderFailure)
    assert (failure.kind, failure.retryable) == (kind, retryable), protocol


async def test_a_rate_limit_says_how_long_to_wait(
    conversation: Conversation, protocol: str
) -> None:
    failure = await conversation.failure("[[sim: status=429 retry_after=7]]")

    assert failure.retry_after_s == 7.0, protocol


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("cut", "stream-truncated"),
        ("drop", "network"),
        ("stall", "timeout"),
        ("malformed", "malformed-stream"),
        ("fail", "server-error"),
    ],
)
async def test_a_fault_keeps_what_came_before_it(
    conversation: Conversation, protocol: str, fault: str, kind: str
) -> None:
    events = await conversation.ask(f"[[sim: {fault}=2 answer='a b c d']]", idle_s=0.3)

    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable, text_of(events)) == (kind, False, "a b"), protocol


async def test_a_fault_can_be_over_at_the_next_attempt(
    conversation: Conversation, protocol: str
) -> None:
    prompt = "[[sim: status=503 times=1 answer=better]]"

    first, second = await conversation.failure(prompt), await conversation.ask(prompt)

    assert (first.kind, text_of(second)) == ("overloaded", "better"), protocol


async def test_calls_are_counted_by_protocol(
    conversation: Conversation, client: httpx.AsyncClient, sim_url: str, protocol: str
) -> None:
    await conversation.ask("one")
    await conversation.ask("two")

    log = (await client.get(f"{sim_url}/sim/calls")).json()

    assert (log["protocols"], log["sessions"]) == ({protocol: 2}, {"ses_1": 2})


SCENARIOS = parse_scenarios(
    """
    [[scenario]]
    name = "weather"
    match = "weather in"
    script = "tool=read args='{}' ; answer=sunny"

    [[scenario]]
    name = "grumpy"
    model = "grumpy"
    script = "status=529"
    """
)


@pytest.mark.parametrize("sim_url", [SimSettings(scenarios=SCENARIOS)], indirect=True)
async def test_scenarios_are_chosen_by_text_and_by_model(
    conversation: Conversation, protocol: str
) -> None:
    weather = await conversation.ask("What is the weather in Oslo?")
    grumpy = await conversation.failure("hi", "grumpy")
    plain = await conversation.ask("hi")
    with_directive = await conversation.ask("[[sim: answer=mine]]", "grumpy")

    assert [call.name for call in calls_of(weather)] == ["read"]
    assert (grumpy.kind, text_of(plain), text_of(with_directive)) == (
        "overloaded",
        "You said: hi",
        "mine",
    ), protocol


async def test_an_answer_that_was_begun_for_the_model_is_continued(
    conversation: Conversation,
) -> None:
    """E-23: the last step prefills the answer, which newer models refuse."""
    prefill = AssistantTurn((TextPart("This is the last step."),))

    events = await conversation.send(user("well"), prefill)

    assert (
        "".join(event.text for event in events if isinstance(event, TextChunk)) == "You said: well"
    )
    assert isinstance(events[-1], StepFinish)
