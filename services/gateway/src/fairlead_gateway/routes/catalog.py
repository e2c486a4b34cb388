"""`GET /api/agent` and `GET /api/model`: what the configuration offers, never its secrets."""

from typing import Any, Literal

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.answers import answer
from fairlead_gateway.incoming import Nothing
from fairlead_gateway.operation import Call, Operation
from fairlead_gateway.routes.location import LocationQuery, selected
from fairlead_schema.catalog import AgentInfo, RequestOverlay
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_service import providers


class ModelApi(Model):
    id: str
    type: Literal["native"] = "native"
    url: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Capabilities(Model):
    tools: bool = True
    input: tuple[str, ...] = ("text",)
    output: tuple[str, ...] = ("text",)


class Released(Model):
    released: int = 0


class CachePrice(Model):
    read: float
    write: float


class Price(Model):
    """USD per million tokens."""

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
    api: ModelApi
    capabilities: Capabilities = Capabilities()
    request: RequestOverlay = RequestOverlay()
    variants: tuple[RequestOverlay, ...] = ()
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
    data = tuple(
        _model(provider_id, provider, model_id, model)
        for provider_id, provider in call.runtime.settings.providers.items()
        for model_id, model in provider.model.items()
    )
    return answer(ModelsAnswer(location=selected(call), data=data))


def _model(
    provider_id: str, provider: providers.Provider, model_id: str, model: providers.Model
) -> ModelInfo:
    cost = model.cost
    cache = CachePrice(read=cost.cache_read, write=cost.cache_write)
    return ModelInfo(
        id=model_id,
        provider_id=provider_id,
        name=model_id,
        api=ModelApi(id=model.id or model_id, url=provider.base_url),
        cost=(Price(input=cost.input, output=cost.output, cache=cache),),
        limit=Limit(context=model.context, output=model.output),
    )


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
