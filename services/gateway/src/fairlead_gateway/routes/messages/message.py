"""`GET /api/session/{sessionID}/message/{messageID}`: one message of the transcript."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing, message_id_of
from fairlead_gateway.http.operation import Call, Operation
from fairlead_schema.errors import MessageNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.message import Message
from fairlead_schema.model import Model


class MessageAnswer(Model):
    data: Message


async def _read(call: Call[Nothing, Nothing]) -> Response:
    message_id = message_id_of(call.request)
    stale = await call.stale()
    found = await call.runtime.read.message(call.at, message_id)
    if found is not None:
        return answer(MessageAnswer(data=found), stale=stale)
    if stale:
        raise ServiceUnavailable("The read models have not caught up yet", service="projector")
    raise MessageNotFound(call.at.session_id, message_id)


READ = Operation(
    id="message.read",
    method="GET",
    path="/api/session/{sessionID}/message/{messageID}",
    summary="One message of a session.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=MessageAnswer,
    errors=(SessionNotFound, MessageNotFound, ServiceUnavailable),
)
