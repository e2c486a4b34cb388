"""The model of a turn: its variant, key and transport are known before anything is promoted."""

from pathlib import Path
from typing import Any, Literal

import pytest

from fairlead_llm.transport import Transport
from fairlead_runner.turn.model_target import output_mode, transports
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AgentSwitched,
    ModelSwitched,
    PromptAdmitted,
    StepFailed,
    StepStarted,
)
from fairlead_schema.prompt import Prompt, PromptFile
from fairlead_service.config.configuration import Config
from fairlead_service.config.providers import ModelConfig
from fairlead_session.explain import explain
from services.runner.tests.conftest import World, admitted

VARIANTS: dict[str, Any] = {
    "headers": {"x-model": "own"},
    "options": {"reasoning": {"effort": "low"}, "seed": 1},
    "variant": {"high": {"body": {"reasoning": {"effort": "high"}}, "headers": {"x-v": "high"}}},
}


def model_switched(variant: str | None = None, model: str = "fast") -> ModelSwitched:
    ref = ModelRef(provider_id="acme", id=model, variant=variant)
    return ModelSwitched(message_id="msg_m", model=ref)


async def explain_refusal(world: World) -> str:
    """Drain a session whose model cannot be called, and return the explanation."""
    await world.write(admitted("msg_1"))

    await world.drain()

    session = await world.session()
    assert (session.execution.rested, [item.message_id for item in session.inbox.pending]) == (
        "failed",
        ["msg_1"],
    )
    assert "prompt.promoted" not in await world.types()
    assert world.provider.requests == []
    return explain(session).reason


async def test_a_variant_is_laid_over_the_models_request(world: World) -> None:
    """O-31: body and headers of the variant override those of the model."""
    world.config["provider"]["acme"]["model"]["fast"].update(VARIANTS)
    await world.write(model_switched("high"), admitted("msg_1"))

    await world.drain()

    (request,), (headers,) = world.provider.requests, world.provider.headers
    assert (request["reasoning"], request["seed"]) == ({"effort": "high"}, 1)
    assert (headers["x-model"], headers["x-v"]) == ("own", "high")


async def test_without_a_variant_a_model_speaks_as_it_is_configured(world: World) -> None:
    """O-31: its options and headers alone."""
    world.config["provider"]["acme"]["model"]["fast"].update(VARIANTS)
    await world.write(admitted("msg_1"))

    await world.drain()

    assert world.provider.requests[0]["reasoning"] == {"effort": "low"}
    assert "x-v" not in world.provider.headers[0]


async def test_an_unknown_variant_promotes_nothing(world: World) -> None:
    """O-31: the variant may have been configured when the session chose it."""
    await world.write(model_switched("high"))

    assert "acme/fast has no variant high" in await explain_refusal(world)


async def test_a_model_that_is_gone_promotes_nothing(world: World) -> None:
    """O-29: the session's model must be configured; no other model replaces it."""
    await world.write(model_switched(model="gone"))

    assert "acme/gone is not configured" in await explain_refusal(world)


async def test_without_a_default_the_newest_model_speaks(world: World) -> None:
    """O-29: if any model is configured."""
    world.config["default_model"] = None
    world.config["provider"]["acme"]["model"]["new"] = {"id": "new-1", "released": "2026-01-01"}
    await world.write(admitted("msg_1"))

    await world.drain()

    assert world.provider.requests[0]["model"] == "new-1"


async def test_a_missing_key_promotes_nothing_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-41: the explanation names the variable."""
    monkeypatch.setenv("FAIRLEAD_TEST_EMPTY_KEY", "")
    world.config["provider"]["acme"]["api_key_env"] = "FAIRLEAD_TEST_EMPTY_KEY"

    assert "acme: FAIRLEAD_TEST_EMPTY_KEY is not set" in await explain_refusal(world)


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-“quoted”", "sk-\x1b[A"])
async def test_a_key_that_no_header_can_hold_promotes_nothing_and_is_not_shown(
    key: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-41: a bad copy of a key looks like a key in many terminals."""
    monkeypatch.setenv("FAIRLEAD_TEST_KEY", key)
    world.config["provider"]["acme"]["api_key_env"] = "FAIRLEAD_TEST_KEY"

    explanation = await explain_refusal(world)

    assert "acme: FAIRLEAD_TEST_KEY has a character that no key has" in explanation
    assert "sk-" not in explanation


async def test_blanks_around_a_key_do_not_count(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-41: a file of another system ends its lines with a carriage return."""
    monkeypatch.setenv("FAIRLEAD_TEST_KEY", " sk-secret\r\n")
    world.config["provider"]["acme"]["api_key_env"] = "FAIRLEAD_TEST_KEY"
    await world.write(admitted("msg_1"))

    await world.drain()

    assert world.provider.headers[0]["authorization"] == "Bearer sk-secret"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"\n", "is empty"), (b"\xff\xfe", "is not UTF-8 text")],
)
async def test_a_key_file_that_holds_no_key_promotes_nothing(
    world: World, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    """D-41: like an empty variable."""
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    world.config["provider"]["acme"]["api_key_file"] = str(path)

    explanation = await explain_refusal(world)

    assert str(path) in explanation
    assert reason in explanation


async def test_a_key_is_in_a_header_and_nowhere_else(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """O-32: never in the body, the log or an event."""
    (tmp_path / "key").write_text("sk-secret\n")
    world.config["provider"]["acme"]["api_key_file"] = str(tmp_path / "key")
    await world.write(admitted("msg_1"))

    await world.drain()

    assert world.provider.headers[0]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in str(world.provider.requests)
    assert "sk-secret" not in str(await world.events()) + caplog.text


async def test_an_agent_brings_words_a_model_and_request_options_of_its_own(world: World) -> None:
    """O-33, P-21: all of it is in the request."""
    models = world.config["provider"]["acme"]["model"]
    models["deep"] = {"id": "deep-1", "options": {"seed": 1, "temperature": 1}}
    world.config["agent"]["build"] |= {
        "model": "acme/deep",
        "headers": {"x-agent": "build"},
        "options": {"temperature": 0.2},
    }
    await world.write(admitted("msg_1"))

    await world.drain()

    request = world.provider.requests[0]
    assert (request["model"], request["seed"], request["temperature"]) == ("deep-1", 1, 0.2)
    assert world.provider.headers[0]["x-agent"] == "build"
    assert world.provider.messages()[0][1].startswith("Be careful.")
    (started,) = (event for event in await world.events() if isinstance(event, StepStarted))
    assert started.model.id == "deep"


async def test_the_model_that_a_session_chose_holds_before_the_agents_own(world: World) -> None:
    """O-33: the options of the agent are applied to it all the same."""
    models = world.config["provider"]["acme"]["model"]
    models["deep"] = {"id": "deep-1"}
    world.config["agent"]["build"] |= {"model": "acme/deep", "options": {"seed": 7}}
    chosen = ModelRef(provider_id="acme", id="fast")
    await world.write(ModelSwitched(message_id="msg_m", model=chosen), admitted("msg_1"))

    await world.drain()

    assert world.provider.requests[0]["model"] == "fast-1"
    assert world.provider.requests[0]["seed"] == 7


async def test_an_attachment_that_is_no_data_is_told_to_the_model_and_blocks_no_later_turn(
    world: World,
) -> None:
    """O-16: no provider could fetch it, so a text replaces it, and the session goes on."""
    file = PromptFile(uri="file:///w/a.png", mime="image/png", name="a.png")
    prompt = Prompt(text="look", files=(file,))
    await world.write(PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer"))
    await world.drain()
    await world.write(admitted("msg_2", "and now?"))

    await world.drain()

    assert (await world.session()).execution.rested == "idle"
    messages = world.provider.messages()
    assert "file:///w/a.png" in str(world.provider.requests[0]["messages"])
    assert ("user", "and now?") in messages
    assert not [event for event in await world.events() if isinstance(event, StepFailed)]


async def test_a_file_of_a_type_that_the_model_cannot_take_blocks_no_later_turn(
    world: World,
) -> None:
    """O-16: another model may take it, so it stays in the history."""
    file = PromptFile(uri="data:application/zip;base64,UEs=", mime="application/zip", name="a.zip")
    prompt = Prompt(text="look", files=(file,))
    await world.write(PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer"))

    await world.drain()

    assert (await world.session()).execution.rested == "idle"
    assert "a.zip (application/zip)" in str(world.provider.requests[0]["messages"])


@pytest.mark.parametrize(
    ("agents", "default", "speaks"),
    [
        ({"build": {}, "plan": {}}, "plan", "plan"),
        ({"build": {}, "plan": {"hidden": True}}, "plan", "build"),
        ({"build": {}, "plan": {"mode": "subagent"}}, "plan", "build"),
        ({"build": {"hidden": True}, "plan": {}}, "build", "plan"),
        ({"build": {"disabled": True}, "plan": {"hidden": True}, "ask": {}}, "plan", "ask"),
    ],
)
async def test_without_an_agent_one_that_people_may_choose_speaks(
    world: World, agents: dict[str, Any], default: str, speaks: str
) -> None:
    """F-47: the default agent, else `build`, else the first; the step names the agent."""
    world.config |= {"agent": agents, "default_agent": default}
    await world.write(admitted("msg_1"))

    await world.drain()

    (started,) = (event for event in await world.events() if isinstance(event, StepStarted))
    assert started.agent == speaks


async def test_an_agent_that_is_not_configured_speaks_without_words_of_its_own(
    world: World,
) -> None:
    """F-48: its id is used as it is, and the system prompt is the baseline alone."""
    await world.write(AgentSwitched(message_id="msg_g", agent="stranger"), admitted("msg_1"))

    await world.drain()

    (started,) = (event for event in await world.events() if isinstance(event, StepStarted))
    assert started.agent == "stranger"
    assert world.provider.messages()[0] == (
        "system",
        "You are running on the model acme/fast.\n\nDay 1",
    )


def test_every_configured_provider_is_reached_in_its_way_and_each_way_is_there_once() -> None:
    """A runner makes its clients before it consumes wakes, so that no turn waits for them."""
    provider = {"protocol": "openai-chat", "base_url": "http://127.0.0.1:1"}
    config = Config.model_validate(
        {"provider": {"a": provider, "b": provider, "c": provider | {"http2": True}}}
    )

    assert transports(config) == {Transport(), Transport(http2=True)}


@pytest.mark.parametrize(
    ("protocol", "configured", "options", "beside_tools", "alone"),
    [
        ("openai-responses", None, {}, "native", "native"),
        ("openai-chat", None, {}, "forced-tool", "forced-tool"),
        ("openai-chat", "native", {}, "native", "native"),
        ("gemini", "native", {}, "forced-tool", "native"),
        ("anthropic-messages", None, {}, "forced-tool", "forced-tool"),
        (
            "anthropic-messages",
            None,
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "offered-tool",
            "offered-tool",
        ),
        ("anthropic-messages", "offered-tool", {}, "offered-tool", "offered-tool"),
    ],
)
def test_a_model_is_asked_for_structured_output_as_it_can_give_it(
    protocol: str,
    configured: Literal["native", "forced-tool", "offered-tool"] | None,
    options: dict[str, object],
    beside_tools: str,
    alone: str,
) -> None:
    """P-17: the provider's own mode where it is known; a thinking budget forbids to force a tool."""
    model = ModelConfig(structured_output=configured)

    assert output_mode(protocol, model, options, alone=False) == beside_tools
    assert output_mode(protocol, model, options, alone=True) == alone
