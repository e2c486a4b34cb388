"""The agent, model and endpoint of a turn, read from the session when the turn starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import configured_headers
from fairlead_llm.transport import Transport
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.subjects import Address
from fairlead_service.config.agents import AgentConfig
from fairlead_service.config.configuration import Config
from fairlead_service.config.providers import (
    Cost,
    ModelCapabilities,
    ModelConfig,
    ModelVariant,
    ProviderConfig,
    Rates,
)
from fairlead_session.compaction.compaction import Window
from fairlead_session.state.session import Session
from fairlead_session.structured.contract import OutputMode
from fairlead_session.transforms.document import Purpose, RequestOrigin
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.usage import TokenPrice


class ModelNotConfigured(Exception):
    """The session's model cannot be called. The message says what to configure."""


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """The agent, model and endpoint of one turn, with price and window."""

    agent: str
    identity: ModelIdentity
    endpoint: ProviderEndpoint
    transport: Transport
    price: TokenPrice
    window: Window
    inputs: frozenset[str] | None = None
    """The kinds of input that the model takes; None if the configuration names none."""
    output_mode: OutputMode = "forced-tool"
    """How the model is asked for structured output beside tools of its own."""
    output_mode_alone: OutputMode = "forced-tool"
    """The same if the turn has no other tools."""


def resolve_model(config: Config, session: Session) -> ModelTarget:
    """The agent, model and endpoint of the next turn. Raises ModelNotConfigured."""
    assert session.profile is not None, "a session that drains was created"
    name = config.agent_name(session.profile.agent)
    agent = config.agents.get(name, AgentConfig())
    ref = config.model_of(name, session.profile.model)
    if ref is None:
        raise ModelNotConfigured("no model: configure one, and set default_model in fairlead.toml")
    return _target(config, ref, name, agent)


def resolve_small_model(config: Config, agent: str) -> ModelTarget | None:
    """The small model of the configuration, if it has one. Raises ModelNotConfigured."""
    ref = config.small_model_ref()
    return None if ref is None else _target(config, ref, agent, AgentConfig())


def _target(config: Config, ref: ModelRef, name: str, agent: AgentConfig) -> ModelTarget:
    provider, model = config.provider.get(ref.provider_id), config.model(ref)
    if provider is None or model is None:
        meant = config.suggest(ref)
        raise ModelNotConfigured(f"model {ref.provider_id}/{ref.id} is not configured{meant}")
    own = ModelVariant(headers=agent.headers, body=agent.options)
    request = model.with_variant(ref.variant, own)
    if request is None:
        raise ModelNotConfigured(f"model {ref.provider_id}/{ref.id} has no variant {ref.variant}")
    return ModelTarget(
        agent=name,
        identity=ModelIdentity(
            model=ref,
            api_model=model.id or ref.id,
            system=agent.system,
            output_tokens_max=model.output or None,
            headers=request.headers,
            options=request.body,
        ),
        endpoint=provider_endpoint(provider, ref),
        transport=provider_transport(provider),
        price=model_price(model.cost),
        window=Window(model.context, model.output),
        inputs=_inputs(model.capabilities),
        output_mode=output_mode(provider.protocol, model, request.body, alone=False),
        output_mode_alone=output_mode(provider.protocol, model, request.body, alone=True),
    )


def request_origin(
    at: Address, target: ModelTarget, request: ModelRequest, purpose: Purpose
) -> RequestOrigin:
    """Where a request comes from, for its transforms."""
    return RequestOrigin(
        at=at,
        agent=target.agent,
        model=target.identity.model,
        purpose=purpose,
        headers=configured_headers(target.endpoint, request),
        output_tokens_max=target.identity.output_tokens_max,
    )


def _inputs(capabilities: ModelCapabilities) -> frozenset[str] | None:
    """The inputs that the configuration names. Without them, the provider decides."""
    named = "input" in capabilities.model_fields_set
    return frozenset(capabilities.input) if named else None


def output_mode(
    protocol: str, model: ModelConfig, options: Mapping[str, Any], *, alone: bool
) -> OutputMode:
    """The provider's own mode where it is known to have one; else a tool, forced if it can be.

    Gemini has its own mode only without tools. A thinking budget forbids to force a tool.
    """
    mode = model.structured_output
    if mode is None:
        mode = "native" if protocol == "openai-responses" else "forced-tool"
    if mode == "native" and protocol == "gemini" and not alone:
        mode = "forced-tool"
    thinking = options.get("thinking")
    budget = isinstance(thinking, Mapping) and thinking.get("type") == "enabled"
    return "offered-tool" if mode == "forced-tool" and budget else mode


def transports(config: Config) -> frozenset[Transport]:
    """The transports of all configured providers."""
    return frozenset(provider_transport(provider) for provider in config.provider.values())


def model_price(cost: Cost) -> TokenPrice:
    """The price of a model's tokens, with the other prices of long prompts."""
    return _price(cost, tuple((tier.context, _price(tier)) for tier in cost.tier))


def _price(rates: Rates, above: tuple[tuple[int, TokenPrice], ...] = ()) -> TokenPrice:
    return TokenPrice(
        input=rates.input,
        output=rates.output,
        cache_read=rates.cache_read,
        cache_write=rates.cache_write,
        above=above,
    )


def provider_endpoint(provider: ProviderConfig, ref: ModelRef) -> ProviderEndpoint:
    """The address and the key of a provider. Raises ModelNotConfigured if the key is missing."""
    return ProviderEndpoint(
        protocol=provider.protocol,
        base_url=provider.base_url,
        api_key=_api_key(provider, ref),
        headers=provider.headers,
        connect_s=provider.connect_timeout_s,
        first_byte_s=provider.first_byte_timeout_s,
        idle_s=provider.idle_timeout_s,
    )


def provider_transport(provider: ProviderConfig) -> Transport:
    """How connections to a provider are made."""
    return Transport(
        ca_file=provider.ca_file,
        client_cert=provider.client_cert,
        client_key=provider.client_key,
        verify=provider.verify,
        proxy=provider.proxy,
        http2=provider.http2,
    )


def _api_key(provider: ProviderConfig, ref: ModelRef) -> str | None:
    """The key, from the environment or a file. No log line and no event contains it."""
    if provider.api_key_env is not None:
        origin, missing = provider.api_key_env, "is not set"
        key = os.environ.get(origin, "").strip()
    elif provider.api_key_file is not None:
        origin, missing = provider.api_key_file, "is empty"
        key = _read_key(origin, ref)
    else:
        return None
    if not key:
        raise ModelNotConfigured(f"provider {ref.provider_id}: {origin} {missing}")
    if not (key.isascii() and key.isprintable()):
        raise ModelNotConfigured(
            f"provider {ref.provider_id}: {origin} has a character that no key has: copy the key again"
        )
    return key


def _read_key(path: str, ref: ModelRef) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ModelNotConfigured(f"provider {ref.provider_id}: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelNotConfigured(f"provider {ref.provider_id}: {path} is not UTF-8 text") from error
