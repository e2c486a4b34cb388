"""`GET /api/session/{sessionID}/todo`: the current list of tasks."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.session_state import load_readable
from fairlead_gateway.log.unreadable import unreadable_place
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound, UnreadablePlace
from fairlead_schema.events.asks import Todo
from fairlead_schema.model import Model


class TodoAnswer(Model):
    data: tuple[Todo, ...]
    unreadable: UnreadablePlace | None = None
    """From which event on the log cannot be read. The tasks are those before it."""


async def _read_todos(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    readable = await load_readable(request.runtime, request.at)
    todos, unreadable = readable.versioned.state.todos, unreadable_place(readable)
    return answer(TodoAnswer(data=todos, unreadable=unreadable))


READ = Operation(
    id="session.todo",
    method="GET",
    path="/api/session/{sessionID}/todo",
    scope="session:read",
    summary="The session's list of tasks.",
    respond=_read_todos,
    answer=TodoAnswer,
    errors=(SessionNotFound, ServiceUnavailable),
)
