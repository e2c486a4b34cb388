"""The instructions of Fairlead in the requests of a runner."""

import asyncio
from pathlib import Path

import pytest

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import AgentSwitched, ContextInitialised, ContextUpdated, ModelSwitched
from fairlead_session.instructions.base_text import base_text
from fairlead_session.instructions.reminders import STEERED
from services.runner.tests.conftest import World, admitted
from services.runner.tests.tool_calls import call_reply, offer_tool, tool_succeeded, wait_for_event


async def take_turn(world: World, id_: str) -> None:
    await world.write(admitted(id_))
    await world.drain()


def system_text(world: World, turn: int = -1) -> str:
    role, text = world.provider.messages(turn)[0]
    assert role == "system"
    return text


async def told(world: World) -> list[str]:
    return [event.text for event in await world.events() if isinstance(event, ContextUpdated)]


async def test_a_built_in_agent_sends_instructions_that_suit_its_model(world: World) -> None:
    """P-16: they are the first part of the baseline, which the log stores."""
    world.config["agent"] = {}
    world.config["provider"]["acme"]["model"]["fast"]["family"] = "claude"

    await take_turn(world, "msg_1")

    text = system_text(world)
    assert text.startswith(base_text("claude"))
    assert "You work as the agent `build`." in text
    (initialised,) = (
        event for event in await world.events() if isinstance(event, ContextInitialised)
    )
    assert initialised.baseline[0].text == base_text("claude")


async def test_a_switch_to_plan_is_told_at_its_place_and_keeps_the_prefix(world: World) -> None:
    """P-19, F-34: the first message of every request has the same bytes."""
    world.config["agent"] = {}
    await take_turn(world, "msg_1")
    await world.write(AgentSwitched(message_id="msg_g", agent="plan"))
    await take_turn(world, "msg_2")
    await world.write(AgentSwitched(message_id="msg_h", agent="build"))

    await take_turn(world, "msg_3")

    to_plan, to_build = await told(world)
    assert "`plan`" in to_plan
    assert "`build`" in to_build
    assert system_text(world, 0) == system_text(world, 1) == system_text(world, 2)
    first, second, third = (world.provider.messages(turn) for turn in range(3))
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert "agent `plan`" in second[-1][1]
    assert "agent `build`" in third[-1][1]


async def test_a_model_of_another_family_gets_its_instructions_as_a_message(world: World) -> None:
    """P-16, F-33: the baseline keeps its bytes."""
    world.config["agent"] = {}
    world.config["provider"]["acme"]["model"]["gpt"] = {"id": "gpt-5"}
    await take_turn(world, "msg_1")
    model = ModelRef(provider_id="acme", id="gpt")
    await world.write(ModelSwitched(message_id="msg_m", model=model))

    await take_turn(world, "msg_2")

    (update,) = await told(world)
    assert base_text("gpt") in update
    assert system_text(world, 0) == system_text(world, 1)


@pytest.mark.parametrize("section", ["agent", "runner"])
async def test_a_file_overrides_the_instructions(
    world: World, tmp_path: Path, section: str
) -> None:
    """P-16: for one agent, or for every agent."""
    file = tmp_path / "base.md"
    file.write_text("House rules.\n")
    setting = {"instructions_file": str(file)}
    world.config["agent"] = {"build": setting} if section == "agent" else {}
    if section == "runner":
        world.config["runner"] = world.config.get("runner", {}) | setting

    await take_turn(world, "msg_1")

    assert system_text(world).startswith("House rules.\n\nYou work as the agent `build`.")


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe", b"x" * 70_000], ids=["missing", "empty", "binary", "long"]
)
async def test_a_session_waits_for_instructions_that_cannot_be_read(
    world: World, tmp_path: Path, content: bytes | None
) -> None:
    """P-16, F-37: the input stays pending, and the reason names the file."""
    file = tmp_path / "base.md"
    if content is not None:
        file.write_bytes(content)
    world.config["agent"] = {"build": {"instructions_file": str(file)}}

    await take_turn(world, "msg_1")

    rest = (await world.session()).execution.rest
    assert rest is not None
    assert rest.reason == "context-unavailable"
    assert str(file) in (rest.detail or "")
    assert world.provider.requests == []


async def test_a_steer_during_a_call_is_followed_by_a_reminder_that_stays(world: World) -> None:
    """P-19: the request after it begins with the same messages."""
    offer_tool(world)
    world.provider.replies.append(call_reply("c1"))
    await world.write(admitted("msg_1"))
    draining = asyncio.create_task(world.drain())
    event = await wait_for_event(world, "attempt.finished")
    await world.write(admitted("msg_2", "faster"), tool_succeeded(event))
    await draining
    await take_turn(world, "msg_3")

    assert await told(world) == [STEERED]
    _, steered, later = (world.provider.messages(turn) for turn in range(3))
    assert STEERED in str(steered)
    assert later[: len(steered)] == steered
