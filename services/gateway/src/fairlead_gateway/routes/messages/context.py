"""`GET /api/session/{sessionID}/context`: the messages the next turn builds on."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.message import Message
from fairlead_schema.model import Model


class ContextAnswer(Model):
    data: tuple[Message, ...]


async def _read(call: Call[Nothing, Nothing]) -> Response:
    stale = await call.stale()
    found = await call.runtime.read.context(call.at)
    return answer(ContextAnswer(data=tuple(found)), stale=stale)


READ = Operation(
    id="session.context",
    method="GET",
    path="/api/session/{sessionID}/context",
    summary="The messages from the newest compaction on.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=ContextAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
