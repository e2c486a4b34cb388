"""`GET /api/session/{sessionID}`: one session."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.model import Model
from fairlead_schema.session_info import SessionInfo


class SessionAnswer(Model):
    data: SessionInfo


async def _read(call: Call[Nothing, Nothing]) -> Response:
    stale = await call.stale()
    found = await call.runtime.read.session(call.at)
    if found is None:
        raise ServiceUnavailable("The session is not projected yet", service="projector")
    return answer(SessionAnswer(data=found), stale=stale)


READ = Operation(
    id="session.read",
    method="GET",
    path="/api/session/{sessionID}",
    summary="One session.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=SessionAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
