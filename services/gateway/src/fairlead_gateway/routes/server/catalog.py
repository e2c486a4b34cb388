"""`GET /api/agent` and `GET /api/model`: the configured agents and models, without secrets."""

from datetime import UTC, date, datetime, time
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.server.location import LocationQuery, select_location
from fairlead_schema.catalog import AgentInfo, RequestOverlay
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_service.config import providers
from fairlead_service.config.agents import AgentConfig


class ProviderApi(Model):
    type: Literal["native"] = "native"
    url: str
    settings: dict[str, Any] = Field(default_factory=dict)


class ModelApi(ProviderApi):
    id: str


class Capabilities(Model):
    tools: bool = True
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class VariantInfo(RequestOverlay):
    id: str


class ModelRequestOverlay(RequestOverlay):
    """The overlay of every request to the model, and its default variant."""

    variant: str | None = None


class ReleaseTime(Model):
    """The release time of the model in epoch milliseconds; 0 if the configuration has none."""

    released: int = 0


class CachePrice(Model):
    read: float
    write: float


class PriceTier(Model):
    """The prompt length in tokens above which a price applies."""

    type: Literal["context"] = "context"
    size: int


class Price(Model):
    """USD per million tokens."""

    tier: PriceTier | None = None
    input: float
    output: float
    cache: CachePrice


class ModelLimit(Model):
    context: int
    output: int


class ModelInfo(Model):
    id: str
    provider_id: str
    name: str
    family: str | None = None
    api: ModelApi
    capabilities: Capabilities = Capabilities()
    request: ModelRequestOverlay = ModelRequestOverlay()
    variants: tuple[VariantInfo, ...] = ()
    time: ReleaseTime = ReleaseTime()
    cost: tuple[Price, ...]
    status: Literal["active"] = "active"
    enabled: Literal[True] = True
    limit: ModelLimit


class AgentsAnswer(Model):
    location: LocationInfo
    data: tuple[AgentInfo, ...]


class ModelsAnswer(Model):
    location: LocationInfo
    data: tuple[ModelInfo, ...]


async def _agents(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    agents = request.runtime.settings.agents
    data = tuple(_agent(id_, agent) for id_, agent in agents.items())
    return answer(AgentsAnswer(location=select_location(request), data=data))


def _agent(id_: str, agent: AgentConfig) -> AgentInfo:
    return AgentInfo(
        id=id_,
        model=agent.model_ref(),
        request=RequestOverlay(headers=hide_values(agent.headers), body=agent.options),
        system=agent.system,
        description=agent.description,
        mode=agent.mode,
        hidden=agent.hidden,
        steps=agent.steps,
        permissions=agent.permissions,
    )


async def _models(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    """List models, newest release first. Equal and unknown days keep the order of the file."""
    data = (
        _model(provider_id, provider, model_id, model)
        for provider_id, provider in request.runtime.settings.providers.items()
        for model_id, model in provider.model.items()
    )
    newest = sorted(data, key=lambda info: info.time.released, reverse=True)
    return answer(ModelsAnswer(location=select_location(request), data=tuple(newest)))


def _model(
    provider_id: str,
    provider: providers.ProviderConfig,
    model_id: str,
    model: providers.ModelConfig,
) -> ModelInfo:
    cost, capabilities = model.cost, model.capabilities
    tiers = (_price(tier, PriceTier(size=tier.context)) for tier in cost.tier)
    return ModelInfo(
        id=model_id,
        provider_id=provider_id,
        name=model.name or model_id,
        family=model.family,
        api=ModelApi(id=model.id or model_id, url=shown_url(provider.base_url)),
        capabilities=Capabilities(
            tools=capabilities.tools, input=capabilities.input, output=capabilities.output
        ),
        request=ModelRequestOverlay(
            headers=hide_values(model.headers), body=model.options, variant=model.default_variant
        ),
        variants=tuple(
            VariantInfo(id=id_, headers=hide_values(variant.headers), body=variant.body)
            for id_, variant in model.variant.items()
        ),
        time=ReleaseTime(released=_epoch_ms(model.released)),
        cost=(_price(cost), *tiers),
        limit=ModelLimit(context=model.context, output=model.output),
    )


def _price(rates: providers.Rates, tier: PriceTier | None = None) -> Price:
    cache = CachePrice(read=rates.cache_read, write=rates.cache_write)
    return Price(tier=tier, input=rates.input, output=rates.output, cache=cache)


def hide_values(headers: dict[str, str]) -> dict[str, str]:
    """Replace header values, which may be secrets."""
    return dict.fromkeys(headers, "…")


def shown_url(url: str) -> str:
    """An address without the user and the password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _epoch_ms(day: date | None) -> int:
    return 0 if day is None else int(datetime.combine(day, time(), UTC).timestamp() * 1000)


AGENTS = Operation(
    id="agent.list",
    method="GET",
    path="/api/agent",
    scope="session:read",
    summary="The configured agents.",
    respond=_agents,
    query=LocationQuery,
    answer=AgentsAnswer,
)

MODELS = Operation(
    id="model.list",
    method="GET",
    path="/api/model",
    scope="session:read",
    summary="The configured models.",
    respond=_models,
    query=LocationQuery,
    answer=ModelsAnswer,
)
