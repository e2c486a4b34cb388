"""`GET /api/session/{sessionID}/todo`: the current list of tasks."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.session_state import load_session
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.events.asks import Todo
from fairlead_schema.model import Model


class TodoAnswer(Model):
    data: tuple[Todo, ...]


async def _read_todos(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    return answer(TodoAnswer(data=(await load_session(request.runtime, request.at)).todos))


READ = Operation(
    id="session.todo",
    method="GET",
    path="/api/session/{sessionID}/todo",
    scope="session:read",
    summary="The session's list of tasks.",
    respond=_read_todos,
    query=EmptyInput,
    body=EmptyInput,
    answer=TodoAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
