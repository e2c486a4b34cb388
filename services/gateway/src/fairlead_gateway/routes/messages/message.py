"""`GET /api/session/{sessionID}/message/{messageID}`: one message of the transcript."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, message_id_of
from fairlead_gateway.reads.stored_messages import require_messages
from fairlead_schema.errors import (
    MessageNotFound,
    ServiceUnavailable,
    SessionIsStored,
    SessionNotFound,
)
from fairlead_schema.message import Message
from fairlead_schema.model import Model


class MessageAnswer(Model):
    data: Message


async def _read_message(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    message_id = message_id_of(request.http)
    stale = await request.is_stale()
    message = await request.runtime.read_model.message(request.at, message_id)
    if message is not None:
        return answer(MessageAnswer(data=message), stale=stale)
    if stale:
        raise ServiceUnavailable("The read models have not caught up yet", service="projector")
    await require_messages(request)
    raise MessageNotFound(request.at.session_id, message_id)


READ = Operation(
    id="message.read",
    method="GET",
    path="/api/session/{sessionID}/message/{messageID}",
    scope="session:read",
    summary="One message of a session.",
    respond=_read_message,
    answer=MessageAnswer,
    serves_stored=True,
    errors=(SessionNotFound, SessionIsStored, MessageNotFound, ServiceUnavailable),
)
