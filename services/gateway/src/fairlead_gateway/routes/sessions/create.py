"""`POST /api/session`: creates a session, or returns the one that has this id."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command, session_id_from_key
from fairlead_gateway.routes.sessions.session import SessionAnswer, describe
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import (
    LimitReached,
    PayloadTooLarge,
    ProviderNotFound,
    ServiceUnavailable,
)
from fairlead_schema.session_info import SessionInfo
from fairlead_service import ids


async def _create(request: ApiRequest[EmptyInput, CreateSession]) -> Response:
    body = request.body
    # Without a location, ingest takes the default of the tenant. An id makes the command repeatable.
    id_ = body.id or session_id_from_key(request.http, request.tenant) or ids.session_id()
    command = body.model_copy(update={"id": id_})
    session = await send_command(request, "session.create", command, CommandAnswer[SessionInfo])
    return answer(SessionAnswer(data=describe(request, session)))


CREATE = Operation(
    id="session.create",
    method="POST",
    path="/api/session",
    scope="session:write",
    summary="Create a session; an id that exists gives the session that has it.",
    respond=_create,
    body=CreateSession,
    answer=SessionAnswer,
    errors=(ProviderNotFound, PayloadTooLarge, LimitReached, ServiceUnavailable),
)
