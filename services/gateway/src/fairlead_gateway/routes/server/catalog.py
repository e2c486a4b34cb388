"""`GET /api/agent` and `GET /api/model`: what the configuration offers, never its secrets."""

from datetime import UTC, date, datetime, time
from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.routes.server.location import LocationQuery, selected
from fairlead_schema.catalog import AgentInfo, RequestOverlay
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_service.config import providers


class ModelApi(Model):
    id: str
    type: Literal["native"] = "native"
    url: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Capabilities(Model):
    tools: bool = True
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class VariantInfo(RequestOverlay):
    id: str


class OwnRequest(RequestOverlay):
    """What is laid over every request to the model, and the variant it takes by itself."""

    variant: str | None = None


class Released(Model):
    """When the model came out, in epoch milliseconds; 0 when nobody says."""

    released: int = 0


class CachePrice(Model):
    read: float
    write: float


class PriceTier(Model):
    """The prompt's length, in tokens, above which a price is charged."""

    type: Literal["context"] = "context"
    size: int


class Price(Model):
    """USD per million tokens."""

    tier: PriceTier | None = None
    input: float
    output: float
    cache: CachePrice


class Limit(Model):
    context: int
    output: int


class ModelInfo(Model):
    id: str
    provider_id: str
    name: str
    family: str | None = None
    api: ModelApi
    capabilities: Capabilities = Capabilities()
    request: OwnRequest = OwnRequest()
    variants: tuple[VariantInfo, ...] = ()
    time: Released = Released()
    cost: tuple[Price, ...]
    status: Literal["active"] = "active"
    enabled: Literal[True] = True
    limit: Limit


class AgentsAnswer(Model):
    location: LocationInfo
    data: tuple[AgentInfo, ...]


class ModelsAnswer(Model):
    location: LocationInfo
    data: tuple[ModelInfo, ...]


async def _agents(call: Call[LocationQuery, Nothing]) -> Response:
    agents = call.runtime.settings.agents
    data = tuple(AgentInfo(id=id_, **dict(agent)) for id_, agent in agents.items())
    return answer(AgentsAnswer(location=selected(call), data=data))


async def _models(call: Call[LocationQuery, Nothing]) -> Response:
    """Newest release first; those of one day, and those of no known day, in the file's order."""
    data = (
        _model(provider_id, provider, model_id, model)
        for provider_id, provider in call.runtime.settings.providers.items()
        for model_id, model in provider.model.items()
    )
    newest = sorted(data, key=lambda info: info.time.released, reverse=True)
    return answer(ModelsAnswer(location=selected(call), data=tuple(newest)))


def _model(
    provider_id: str,
    provider: providers.ProviderConfig,
    model_id: str,
    model: providers.ModelConfig,
) -> ModelInfo:
    cost, able = model.cost, model.capabilities
    tiers = (_price(tier, PriceTier(size=tier.context)) for tier in cost.tier)
    return ModelInfo(
        id=model_id,
        provider_id=provider_id,
        name=model.name or model_id,
        family=model.family,
        api=ModelApi(id=model.id or model_id, url=provider.base_url),
        capabilities=Capabilities(tools=able.tools, input=able.input, output=able.output),
        request=OwnRequest(
            headers=_hidden(model.headers), body=model.options, variant=model.default_variant
        ),
        variants=tuple(
            VariantInfo(id=id_, headers=_hidden(one.headers), body=one.body)
            for id_, one in model.variant.items()
        ),
        time=Released(released=_epoch_ms(model.released)),
        cost=(_price(cost), *tiers),
        limit=Limit(context=model.context, output=model.output),
    )


def _price(rates: providers.Rates, tier: PriceTier | None = None) -> Price:
    cache = CachePrice(read=rates.cache_read, write=rates.cache_write)
    return Price(tier=tier, input=rates.input, output=rates.output, cache=cache)


def _hidden(headers: dict[str, str]) -> dict[str, str]:
    """A header's value may be a secret: only its name is shown."""
    return dict.fromkeys(headers, "…")


def _epoch_ms(day: date | None) -> int:
    return 0 if day is None else int(datetime.combine(day, time(), UTC).timestamp() * 1000)


AGENTS = Operation(
    id="agent.list",
    method="GET",
    path="/api/agent",
    summary="The configured agents.",
    respond=_agents,
    query=LocationQuery,
    body=Nothing,
    answer=AgentsAnswer,
)

MODELS = Operation(
    id="model.list",
    method="GET",
    path="/api/model",
    summary="The configured models.",
    respond=_models,
    query=LocationQuery,
    body=Nothing,
    answer=ModelsAnswer,
)
