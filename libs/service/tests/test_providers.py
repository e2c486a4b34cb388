"""The catalog: variants over models, and transports that make sense."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_schema.catalog import ModelRef
from fairlead_service.config.configuration import Config
from fairlead_service.config.providers import Cost, ModelConfig, ModelVariant, ProviderConfig

MODEL = ModelConfig.model_validate(
    {
        "headers": {"x-a": "1", "x-b": "1"},
        "options": {"thinking": {"type": "adaptive", "effort": "low"}, "store": False},
        "default_variant": "low",
        "variant": {
            "low": {},
            "high": {"headers": {"x-b": "2"}, "body": {"thinking": {"effort": "high"}}},
        },
    }
)
OWN = ModelVariant(headers=MODEL.headers, body=MODEL.options)


def provider(**fields: Any) -> ProviderConfig:  # noqa: ANN401 - any setting
    return ProviderConfig(protocol="openai-chat", base_url="https://acme", **fields)


def test_a_variant_is_laid_over_its_model() -> None:
    """O-31: tables join, everything else is replaced."""
    assert MODEL.with_variant("high") == ModelVariant(
        headers={"x-a": "1", "x-b": "2"},
        body={"thinking": {"type": "adaptive", "effort": "high"}, "store": False},
    )


@pytest.mark.parametrize("variant", [None, "default"])
def test_default_is_the_models_own_default_variant(variant: str | None) -> None:
    """O-31: named or not."""
    high = MODEL.model_copy(update={"default_variant": "high"})

    assert high.with_variant(variant) == high.with_variant("high")
    assert MODEL.with_variant(variant) == OWN
    assert ModelConfig().with_variant(variant) == ModelVariant()


def test_a_variant_may_itself_be_called_default() -> None:
    """O-31: then it is the default variant."""
    named = ModelConfig(variant={"default": ModelVariant(body={"n": 1})})

    assert named.with_variant(None) == ModelVariant(body={"n": 1})


def test_an_unknown_variant_is_none() -> None:
    """O-31: it never falls back to the default variant."""
    assert MODEL.with_variant("huge") is None


def test_without_a_default_the_newest_model_is_taken() -> None:
    """O-29: dated before undated, then the order of the file."""
    old, new, undated = (
        ModelConfig(released=date(2025, 1, 1)),
        ModelConfig(released=date(2026, 1, 1)),
        ModelConfig(),
    )
    dated = Config(provider={"acme": provider(model={"u": undated, "old": old, "new": new})})
    bare = Config(provider={"acme": provider(model={"first": undated, "second": undated})})

    assert dated.model_ref() == ModelRef(provider_id="acme", id="new")
    assert bare.model_ref() == ModelRef(provider_id="acme", id="first")
    assert Config().model_ref() is None


def test_a_set_default_wins_over_a_newer_model() -> None:
    """O-29: the default first."""
    models = {"old": ModelConfig(), "new": ModelConfig(released=date(2026, 1, 1))}
    config = Config(default_model="acme/old", provider={"acme": provider(model=models)})

    assert config.model_ref() == ModelRef(provider_id="acme", id="old")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"verify": False, "ca_file": "ca.pem"}, "trusts everybody"),
        ({"client_key": "key.pem"}, "no client_cert"),
        ({"proxy": "socks5://x"}, "pattern"),
        ({"model": {"m": {"default_variant": "high"}}}, "no \\[variant\\] section"),
        ({"model": {"m": {"cost": {"input": -1}}}}, "greater than or equal to 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        provider(**fields)


def test_an_unsupported_api_is_refused() -> None:
    """O-30: with the ones that are spoken."""
    with pytest.raises(ValidationError, match="openai-responses"):
        ProviderConfig.model_validate({"protocol": "bedrock", "base_url": "https://acme"})


def test_http2_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_service.config.providers.find_spec", lambda _name: None)

    with pytest.raises(ValidationError, match="package h2"):
        provider(http2=True)


def test_http2_is_taken_where_its_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_service.config.providers.find_spec", lambda _name: object())

    assert provider(http2=True).http2


def test_tiers_are_told_apart_by_their_context() -> None:
    tier = {"context": 200_000, "input": 6.0}

    assert Cost.model_validate({"tier": [tier]}).tier[0].input == 6.0
    with pytest.raises(ValidationError, match="same context"):
        Cost.model_validate({"tier": [tier, tier]})
    with pytest.raises(ValidationError, match="context"):
        Cost.model_validate({"tier": [{"input": 6.0}]})
