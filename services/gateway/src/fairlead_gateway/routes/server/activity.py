"""`GET /api/tenant/activity`: what the turns of a tenant have used since a time."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, WholeNumber
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.model import InputModel, Model


class ActivityQuery(InputModel):
    since: Annotated[WholeNumber, Field(ge=0)]
    """Epoch milliseconds, such as the beginning of today where the caller is."""


class TenantActivity(Model):
    since: int
    turns: int
    cost: float
    tokens: int


class ActivityAnswer(Model):
    data: TenantActivity


async def _read(request: ApiRequest[ActivityQuery, EmptyInput]) -> Response:
    since = request.query.since
    used = await request.runtime.read_model.activity(request.tenant, since=since)
    return answer(ActivityAnswer(data=TenantActivity(since=since, **used._asdict())))


READ = Operation(
    id="tenant.activity",
    method="GET",
    path="/api/tenant/activity",
    scope="session:read",
    summary="How many turns began since a time, and what they used.",
    respond=_read,
    query=ActivityQuery,
    answer=ActivityAnswer,
    errors=(ServiceUnavailable,),
)
