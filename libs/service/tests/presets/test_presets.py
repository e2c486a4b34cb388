"""Presets: a provider's name is enough, and what the file says stands on top."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.catalog import ModelRef
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_service.config.providers import ProviderConfig
from fairlead_service.presets.model_data import find_model
from fairlead_service.presets.preset import PRESETS, Preset

HOSTED = [preset for preset in PRESETS.values() if not preset.is_local]
LOCAL = [preset for preset in PRESETS.values() if preset.is_local]


def config(text: str, tmp_path: Path) -> Config:
    file = tmp_path / "fairlead.toml"
    file.write_text(text)
    return load(file, {})


def provider(**table: Any) -> ProviderConfig:  # noqa: ANN401 - any setting
    return Config.model_validate({"provider": {"anthropic": table}}).provider["anthropic"]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_the_name_of_a_preset_is_a_whole_provider(preset: Preset) -> None:
    named = Config.model_validate({"provider": {preset.name: {}}}).provider[preset.name]

    assert (named.protocol, named.base_url) == (preset.protocol, preset.base_url)
    assert named.api_key_env == preset.key_env


@pytest.mark.parametrize("preset", HOSTED, ids=lambda preset: preset.name)
def test_the_models_of_a_preset_have_windows_and_prices(preset: Preset) -> None:
    models = Config.model_validate({"provider": {preset.name: {}}}).models()

    assert [ref.id for ref, _ in models] == [preset.default, preset.small]
    for _, model in models:
        assert model.context >= 100_000
        assert 0 < model.cost.input < model.cost.output
    default, small = (model.cost.output for _, model in models)
    assert small < default


@pytest.mark.parametrize("preset", HOSTED, ids=lambda preset: preset.name)
def test_sessions_use_the_default_of_the_preset(preset: Preset) -> None:
    settings = Config.model_validate({"provider": {preset.name: {}}})

    assert settings.model_ref() == ModelRef(provider_id=preset.name, id=str(preset.default))


def test_a_provider_of_another_name_names_its_preset(tmp_path: Path) -> None:
    settings = config('[provider.work]\npreset = "openai"\napi_key_env = "WORK_KEY"', tmp_path)

    work = settings.provider["work"]
    assert (work.preset, work.protocol, work.api_key_env) == (
        "openai",
        "openai-responses",
        "WORK_KEY",
    )


def test_a_key_file_takes_the_place_of_the_variable() -> None:
    assert provider(api_key_file="/run/key").api_key_env is None


def test_a_provider_that_says_its_protocol_has_no_preset_unless_it_names_one() -> None:
    own = provider(protocol="openai-chat", base_url="http://127.0.0.1:9000")

    assert (own.preset, own.api_key_env, own.model) == (None, None, {})


def test_the_address_of_the_file_stands_over_the_preset() -> None:
    assert provider(base_url="http://127.0.0.1:9000").base_url == "http://127.0.0.1:9000"


def test_a_model_without_a_section_is_known() -> None:
    """A session may choose any model that the data knows."""
    model = provider().find_model("claude-opus-4-5-20251101")

    assert model is not None
    assert (model.context, model.cost.input, model.cost.output) == (200_000, 5.0, 25.0)
    assert model.output == PRESETS["anthropic"].output


def test_the_values_of_the_file_stand_over_the_data() -> None:
    section = {"context": 150_000, "cost": {"input": 1.0, "output": 2.0}}

    model = provider(model={"claude-sonnet-4-5": section}).model["claude-sonnet-4-5"]

    assert (model.context, model.cost.input, model.cost.output) == (150_000, 1.0, 2.0)
    assert (model.cost.tier, model.name) == ((), "Claude Sonnet 4.5")


def test_a_name_of_the_file_finds_the_data_by_its_id() -> None:
    model = provider(model={"fast": {"id": "claude-haiku-4-5"}}).model["fast"]

    assert (model.id, model.cost.input) == ("claude-haiku-4-5", 1.0)


def test_a_model_that_the_data_does_not_know_needs_a_section() -> None:
    settings = provider(model={"claude-next": {}})

    assert settings.find_model("claude-next") is not None
    assert settings.find_model("claude-nobody") is None


def test_models_that_the_file_names_are_listed(tmp_path: Path) -> None:
    text = """
default_model = "anthropic/claude-opus-5"
small_model = "anthropic/claude-haiku-4-5"
[agent.plan]
model = "anthropic/claude-fable-5"
[provider.anthropic]
"""
    names = [ref.id for ref, _ in config(text, tmp_path).models()]

    assert {"claude-opus-5", "claude-haiku-4-5", "claude-fable-5"} <= set(names)


@pytest.mark.parametrize("preset", LOCAL, ids=lambda preset: preset.name)
def test_a_server_on_this_machine_takes_every_name_and_costs_nothing(preset: Preset) -> None:
    name = f"{preset.name}/qwen3:8b"
    settings = Config.model_validate({"default_model": name, "provider": {preset.name: {}}})

    model = settings.model(ModelRef(provider_id=preset.name, id="another"))

    assert settings.model_ref() == ModelRef(provider_id=preset.name, id="qwen3:8b")
    assert model is not None
    assert (model.context, model.cost.output) == (0, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[provider.antropic]", "did you mean 'anthropic'?"),
        ('[provider.x]\npreset = "openia"', "'openia' is unknown; did you mean 'openai'?"),
        ('[provider.x]\npreset = "zzz"', "the presets are anthropic, openai, gemini"),
        ("[provider.anthropic]\npreset = 7", "provider.anthropic.preset: 7 is unknown"),
        ("[provider.anthropic]\npreset = []", "provider.anthropic.preset: [] is unknown"),
        ("[provider]\nanthropic = 7", "provider.anthropic"),
        ("[provider.anthropic]\nmodel = 7", "provider.anthropic.model"),
        ("[provider.anthropic.model]\nx = 7", "provider.anthropic.model.x"),
        ("[provider.anthropic.model.x]\nid = 7", "provider.anthropic.model.x.id"),
        (
            'default_model = "anthropic/claude-sonet-5-5"\n[provider.anthropic]',
            "did you mean 'claude-sonnet-5-5'?",
        ),
        ('default_model = "openai/x"\n[provider.anthropic]', "has no [provider.openai] section"),
    ],
)
def test_a_mistake_is_named_with_what_was_perhaps_meant(
    text: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as error:
        config(text, tmp_path)

    assert reason in str(error.value)


def test_unknown_models_are_not_found() -> None:
    assert find_model("anthropic", "gpt-5") is None
    assert find_model("nobody", "gpt-5") is None
