"""The configured catalog: providers, the way to reach them, their models and variants."""

from collections.abc import Mapping
from datetime import date
from importlib.util import find_spec
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from fairlead_service.config.section import Section
from fairlead_service.presets.preset import PRESETS
from fairlead_service.presets.preset_tables import model_table

DEFAULT_VARIANT: Final = "default"


class Rates(Section):
    """USD per million tokens."""

    input: float = Field(default=0, ge=0)
    output: float = Field(default=0, ge=0)
    cache_read: float = Field(default=0, ge=0)
    cache_write: float = Field(default=0, ge=0)


class Tier(Rates):
    """The rates of a step whose prompt is longer than `context` tokens."""

    context: int = Field(gt=0)


class Cost(Rates):
    """A model's rates, and those of longer prompts."""

    tier: tuple[Tier, ...] = ()

    @model_validator(mode="after")
    def _tiers_differ(self) -> Self:
        if len({tier.context for tier in self.tier}) < len(self.tier):
            raise ValueError("two tiers have the same context")
        return self


class ModelCapabilities(Section):
    """The kinds of input and output of a model; clients see them."""

    tools: bool = True
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class ModelVariant(Section):
    """Headers and body fields that replace or extend those of the model."""

    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)

    def overlaid(self, *overlays: "ModelVariant") -> "ModelVariant":
        """The variant with others over it, the last one on top."""
        headers, body = self.headers, self.body
        for overlay in overlays:
            headers, body = headers | overlay.headers, _merge_tables(body, overlay.body)
        return ModelVariant(headers=headers, body=body)


class ModelConfig(Section):
    id: str | None = None
    name: str | None = None
    family: str | None = None
    released: date | None = None
    context: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    cost: Cost = Cost()
    capabilities: ModelCapabilities = ModelCapabilities()
    headers: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    structured_output: Literal["native", "forced-tool", "offered-tool"] | None = None
    default_variant: str | None = None
    variant: dict[str, ModelVariant] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _default_variant_exists(self) -> Self:
        if self.default_variant is not None and self.default_variant not in self.variant:
            raise ValueError(f"default_variant {self.default_variant!r} has no [variant] section")
        return self

    def with_variant(
        self, variant: str | None, agent: ModelVariant | None = None
    ) -> ModelVariant | None:
        """The headers and body of a variant merged over the model's own. None: no such variant.

        No variant, or `default`, means the model's default variant (O-31). What an `agent` adds
        overrides the model and its default variant; a variant that somebody chose overrides the agent.
        """
        name = variant or DEFAULT_VARIANT
        is_chosen = name != DEFAULT_VARIANT
        if not is_chosen and name not in self.variant:
            name = self.default_variant or DEFAULT_VARIANT
        overlay = self.variant.get(name)
        if overlay is None and name != DEFAULT_VARIANT:
            return None
        own = ModelVariant(headers=self.headers, body=self.options)
        overlay, agent = overlay or ModelVariant(), agent or ModelVariant()
        return own.overlaid(agent, overlay) if is_chosen else own.overlaid(overlay, agent)


class ProviderConfig(Section):
    preset: str | None = None
    protocol: Literal["anthropic-messages", "openai-responses", "openai-chat", "gemini"]
    base_url: str = Field(pattern=r"^https?://")
    api_key_env: str | None = None
    api_key_file: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    connect_timeout_s: float = Field(default=10.0, gt=0)
    first_byte_timeout_s: float = Field(default=300.0, gt=0)
    idle_timeout_s: float = Field(default=300.0, gt=0)
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    verify: bool = True
    proxy: str | None = Field(default=None, pattern=r"^https?://")
    http2: bool = False
    model: dict[str, ModelConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _transport_makes_sense(self) -> Self:
        if self.ca_file is not None and not self.verify:
            raise ValueError("ca_file says whom to trust, and verify = false trusts everybody")
        if self.client_key is not None and self.client_cert is None:
            raise ValueError("client_key has no client_cert")
        if self.http2 and find_spec("h2") is None:
            raise ValueError("http2 needs the package h2, which is not installed")
        return self

    def find_model(self, name: str) -> ModelConfig | None:
        """The configured model, or a model that the preset knows without a section of its own."""
        configured = self.model.get(name)
        if configured is not None or self.preset is None:
            return configured
        table = model_table(PRESETS[self.preset], name)
        return None if table is None else ModelConfig.model_validate(table)


def _merge_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the changes: tables are merged, every other value is replaced."""
    merged = {
        key: _merge_tables(base[key], value)
        for key, value in changes.items()
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
    }
    return {**base, **changes, **merged}
