"""`GET /openapi.json`: the description of this API."""

from collections.abc import Sequence
from functools import cache

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairlead_gateway.http.access_log import set_route
from fairlead_gateway.http.answers import JSON
from fairlead_gateway.http.openapi import document
from fairlead_gateway.http.operation import AnyOperation

PATH = "/openapi.json"


def route(operations: Sequence[AnyOperation]) -> Route:
    """The route that serves the document, which is generated once, when somebody asks."""

    @cache
    def body() -> bytes:
        return orjson.dumps(document(operations))

    async def endpoint(request: Request) -> Response:
        set_route(request.scope, PATH)
        return Response(body(), media_type=JSON)

    return Route(PATH, endpoint)
