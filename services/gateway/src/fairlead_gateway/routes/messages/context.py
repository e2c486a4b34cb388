"""`GET /api/session/{sessionID}/context`: the messages that the next turn sends."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.message import Message
from fairlead_schema.model import Model


class ContextAnswer(Model):
    data: tuple[Message, ...]


async def _read_context(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_stale()
    messages = await request.runtime.read_model.context(request.at)
    return answer(ContextAnswer(data=tuple(messages)), stale=stale)


READ = Operation(
    id="session.context",
    method="GET",
    path="/api/session/{sessionID}/context",
    scope="session:read",
    summary="The messages from the newest compaction on.",
    respond=_read_context,
    query=EmptyInput,
    body=EmptyInput,
    answer=ContextAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
