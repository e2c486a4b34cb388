"""`GET /api/health`: this server answers."""

from typing import Literal

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_schema.model import Model


class Healthy(Model):
    healthy: Literal[True] = True


async def _read(_call: Call[Nothing, Nothing]) -> Response:
    return answer(Healthy())


READ = Operation(
    id="health.read",
    method="GET",
    path="/api/health",
    summary="Whether this server answers.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=Healthy,
)
