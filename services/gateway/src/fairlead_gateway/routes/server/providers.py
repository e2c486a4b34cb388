"""`GET /api/provider` and `GET /api/provider/{providerID}`: the configured providers, without secrets."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.server.catalog import ProviderApi, hide_values, shown_url
from fairlead_gateway.routes.server.location import LocationQuery, select_location
from fairlead_schema.catalog import RequestOverlay
from fairlead_schema.errors import ProviderNotFound
from fairlead_schema.location import LocationInfo
from fairlead_schema.model import Model
from fairlead_service.config.providers import ProviderConfig


class ProviderInfo(Model):
    id: str
    name: str
    api: ProviderApi
    request: RequestOverlay


class ProvidersAnswer(Model):
    location: LocationInfo
    data: tuple[ProviderInfo, ...]


class ProviderAnswer(Model):
    location: LocationInfo
    data: ProviderInfo


async def _list(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    providers = request.runtime.settings.providers
    data = tuple(_provider(id_, provider) for id_, provider in providers.items())
    return answer(ProvidersAnswer(location=select_location(request), data=data))


async def _read(request: ApiRequest[LocationQuery, EmptyInput]) -> Response:
    id_ = request.http.path_params["providerID"]
    provider = request.runtime.settings.providers.get(id_)
    if provider is None:
        raise ProviderNotFound(id_)
    data = _provider(id_, provider)
    return answer(ProviderAnswer(location=select_location(request), data=data))


def _provider(id_: str, provider: ProviderConfig) -> ProviderInfo:
    return ProviderInfo(
        id=id_,
        name=id_,
        api=ProviderApi(url=shown_url(provider.base_url), settings={"protocol": provider.protocol}),
        request=RequestOverlay(headers=hide_values(provider.headers)),
    )


LIST = Operation(
    id="provider.list",
    method="GET",
    path="/api/provider",
    scope="session:read",
    summary="The configured providers.",
    respond=_list,
    query=LocationQuery,
    answer=ProvidersAnswer,
)

READ = Operation(
    id="provider.read",
    method="GET",
    path="/api/provider/{providerID}",
    scope="session:read",
    summary="One configured provider.",
    respond=_read,
    query=LocationQuery,
    answer=ProviderAnswer,
    errors=(ProviderNotFound,),
)
