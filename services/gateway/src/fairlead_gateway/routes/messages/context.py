"""`GET /api/session/{sessionID}/context`: the messages that the next turn sends."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.unreadable import find_unreadable_place
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound, UnreadablePlace
from fairlead_schema.message import Message
from fairlead_schema.model import Model


class ContextAnswer(Model):
    data: tuple[Message, ...]
    unreadable: UnreadablePlace | None = None
    """From which event on the log cannot be read. The messages are those before it."""


async def _read_context(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_stale()
    messages = await request.runtime.read_model.context(request.at)
    unreadable = await find_unreadable_place(request)
    return answer(ContextAnswer(data=tuple(messages), unreadable=unreadable), stale=stale)


READ = Operation(
    id="session.context",
    method="GET",
    path="/api/session/{sessionID}/context",
    scope="session:read",
    summary="The messages from the newest compaction on.",
    respond=_read_context,
    answer=ContextAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
