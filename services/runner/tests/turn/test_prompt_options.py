"""One prompt with options of its own: its turns use them, and the next prompt does not."""

import json

from starlette.responses import Response

from fairlead_schema.context import ContextSample
from fairlead_schema.events import (
    AttemptDispatched,
    PromptAdmitted,
    StepStarted,
    ToolCalled,
    ToolFailed,
)
from fairlead_schema.prompt import Prompt
from services.runner.tests.conftest import DATE, World, events_of, stream_reply

TOOLS = ("bash", "read")


def asks(id_: str, **options: object) -> PromptAdmitted:
    prompt = Prompt.model_validate({"text": "hello", **options})
    return PromptAdmitted(message_id=id_, prompt=prompt, delivery="steer")


def offer_tools(world: World) -> None:
    """Let the tools service offer two tools."""
    tools = [
        {
            "name": name,
            "description": name,
            "inputSchema": {"type": "object"},
            "retry": "pure",
            "revision": "r",
        }
        for name in TOOLS
    ]
    sample = ContextSample(observations=(DATE,)).wire()
    body = json.dumps({"data": {**sample, "tools": tools, "toolsHash": "h"}}).encode()

    async def answer(_body: bytes) -> bytes:
        return body

    world.answer(answer)


def offered(world: World, turn: int = -1) -> list[str]:
    tools = world.provider.requests[turn].get("tools", [])
    return [tool["function"]["name"] for tool in tools]


def call_reply(name: str) -> Response:
    call = {"index": 0, "id": "call_1", "function": {"name": name, "arguments": "{}"}}
    chunks: tuple[dict[str, object], ...] = (
        {"choices": [{"delta": {"tool_calls": [call]}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    )
    return stream_reply(*(json.dumps(chunk) for chunk in chunks), "[DONE]")


async def test_agent_and_model_hold_for_one_prompt(world: World) -> None:
    """P-18, P-21: the agent's own options are in the request; then the session's own come back."""
    world.config["provider"]["acme"]["model"]["slow"] = {"id": "slow-1"}
    world.config["agent"]["poet"] = {"system": "Rhyme.", "options": {"temperature": 0.5}}
    model = {"providerID": "acme", "id": "slow"}
    await world.eventlog.status.finalise(2)
    await world.write(asks("msg_1", agent="poet", model=model))
    await world.drain()
    await world.write(asks("msg_2"))
    await world.drain()

    first, second = world.provider.requests
    assert (first["model"], first["temperature"]) == ("slow-1", 0.5)
    assert first["messages"][0]["content"].startswith("Rhyme.")
    assert (second["model"], "temperature" in second) == ("fast-1", False)
    assert second["messages"][0]["content"].startswith("Be careful.")
    steps = events_of(await world.events(), StepStarted)
    assert [(step.agent, step.model.id) for step in steps] == [("poet", "slow"), ("build", "fast")]


async def test_system_text_is_a_message_behind_its_prompt(world: World) -> None:
    """P-18: the request begins like the one before it, so a provider's cache holds."""
    await world.eventlog.status.finalise(2)
    await world.write(asks("msg_1"))
    await world.drain()
    await world.write(asks("msg_2", system="In French."))
    await world.drain()

    before, after = world.provider.messages(0), world.provider.messages(1)
    assert after[: len(before)] == before
    assert after[-1][1].startswith("hello")
    assert "In French." in after[-1][1]


async def test_a_selection_narrows_the_tools_of_one_prompt(world: World) -> None:
    """P-18: a tool that nobody offers is told, and the next prompt has all tools again."""
    offer_tools(world)
    await world.eventlog.status.finalise(2)
    await world.write(asks("msg_1", tools=["read", "reed"]))
    await world.drain()
    await world.write(asks("msg_2"))
    await world.drain()

    assert offered(world, 0) == ["read"]
    assert "do not exist here: reed" in world.provider.messages(0)[-1][1]
    assert offered(world, 1) == list(TOOLS)


async def test_a_call_of_a_tool_that_is_not_selected_fails_without_running(world: World) -> None:
    """P-18: the selection is no advice to the model; the call reaches no worker."""
    offer_tools(world)
    world.provider.replies.append(call_reply("bash"))
    await world.eventlog.status.finalise(2)
    await world.write(asks("msg_1", tools=["read"]))

    await world.drain()

    events = await world.events()
    assert [call.tool for call in events_of(events, ToolCalled)] == ["bash"]
    (failed,) = events_of(events, ToolFailed)
    assert "not selected" in failed.error.message
    assert len(events_of(events, AttemptDispatched)) == 2


async def test_the_steps_of_a_chosen_agent_are_its_limit(world: World) -> None:
    """P-21: an agent with one step offers no tools in it, also when one prompt chose the agent."""
    offer_tools(world)
    world.config["agent"]["short"] = {"steps": 1}
    await world.eventlog.status.finalise(2)
    await world.write(asks("msg_1", agent="short"))

    await world.drain()

    assert offered(world) == []
