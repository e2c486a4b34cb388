"""`GET /api/session/{sessionID}/history`: public events from the log, in pages."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Decimal, Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.http.sse import closed
from fairlead_gateway.log.events import PUBLIC, Translation, stored_events
from fairlead_gateway.routes.pages import PAGE_DEFAULT
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.model import InputModel, Model
from fairlead_schema.public_events import EventEnvelope

HISTORY_MAX = 100


class HistoryQuery(InputModel):
    limit: Annotated[Decimal, Field(ge=1, le=HISTORY_MAX)] = PAGE_DEFAULT
    after: Annotated[Decimal, Field(ge=0)] = 0


class HistoryPage(Model):
    data: tuple[EventEnvelope, ...]
    has_more: bool


async def _read(call: Call[HistoryQuery, Nothing]) -> Response:
    limit, after = call.query.limit, call.query.after
    found: list[EventEnvelope] = []
    if after < call.head.seq:
        runtime = call.runtime
        translation = Translation(call.at, runtime.read, visible=PUBLIC)
        events = stored_events(runtime.medium().log, call.at, translation, after=after)
        async with closed(events) as reading:
            async for envelope in reading:
                found.append(envelope)
                if len(found) > limit:
                    break
    return answer(HistoryPage(data=tuple(found[:limit]), has_more=len(found) > limit))


READ = Operation(
    id="session.history",
    method="GET",
    path="/api/session/{sessionID}/history",
    summary="The public events of a session after a sequence.",
    respond=_read,
    query=HistoryQuery,
    body=Nothing,
    answer=HistoryPage,
    errors=(SessionNotFound, ServiceUnavailable),
)
