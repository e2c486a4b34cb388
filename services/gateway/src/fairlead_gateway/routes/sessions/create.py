"""`POST /api/session`: make a session, or find the one that has this id."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import ask, session_id_for
from fairlead_gateway.reads.rows import shown
from fairlead_gateway.routes.sessions.session import SessionAnswer
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import (
    LimitReached,
    PayloadTooLarge,
    ProviderNotFound,
    ServiceUnavailable,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import SessionInfo


async def _create(call: Call[Nothing, CreateSession]) -> Response:
    wanted, settings = call.body, call.runtime.settings
    command = wanted.model_copy(
        update={
            "id": wanted.id or session_id_for(call.request, call.tenant),
            "location": wanted.location or LocationRef(directory=settings.directory),
        }
    )
    created = await ask(
        call.runtime, call.tenant, "session.create", command, CommandAnswer[SessionInfo]
    )
    return answer(SessionAnswer(data=shown(created)))


CREATE = Operation(
    id="session.create",
    method="POST",
    path="/api/session",
    summary="Create a session; an id that exists gives the session that has it.",
    respond=_create,
    query=Nothing,
    body=CreateSession,
    answer=SessionAnswer,
    errors=(ProviderNotFound, PayloadTooLarge, LimitReached, ServiceUnavailable),
)
