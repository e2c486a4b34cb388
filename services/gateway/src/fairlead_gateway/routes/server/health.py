"""`GET /api/health`: says that this server answers."""

from typing import Literal

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.model import Model


class HealthAnswer(Model):
    healthy: Literal[True] = True


async def _read_health(_request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    return answer(HealthAnswer())


READ = Operation(
    id="health.read",
    method="GET",
    path="/api/health",
    scope=None,
    summary="Whether this server answers.",
    respond=_read_health,
    answer=HealthAnswer,
)
