"""`GET /api/session/{sessionID}/todo`: the list of tasks, as it is now."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.session_state import folded
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.events.asks import Todo
from fairlead_schema.model import Model


class TodoAnswer(Model):
    data: tuple[Todo, ...]


async def _read(call: Call[Nothing, Nothing]) -> Response:
    return answer(TodoAnswer(data=(await folded(call.runtime, call.at)).todos))


READ = Operation(
    id="session.todo",
    method="GET",
    path="/api/session/{sessionID}/todo",
    summary="The session's list of tasks.",
    respond=_read,
    query=Nothing,
    body=Nothing,
    answer=TodoAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
