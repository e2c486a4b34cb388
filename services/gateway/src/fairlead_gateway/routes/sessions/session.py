"""`GET /api/session/{sessionID}`: one session."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.model import Model
from fairlead_schema.session_info import SessionInfo


class SessionAnswer(Model):
    data: SessionInfo


async def _read_session(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_stale()
    session = await request.runtime.read_model.session(request.at)
    if session is None:
        raise ServiceUnavailable("The session is not projected yet", service="projector")
    return answer(SessionAnswer(data=session), stale=stale)


READ = Operation(
    id="session.read",
    method="GET",
    path="/api/session/{sessionID}",
    scope="session:read",
    summary="One session.",
    respond=_read_session,
    query=EmptyInput,
    body=EmptyInput,
    answer=SessionAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
