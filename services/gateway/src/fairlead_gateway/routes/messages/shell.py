"""`POST /api/session/{sessionID}/shell`: run a person's own command, durably, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.messages.input_command import send_input
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import RequestShell, ShellBody, ShellReceipt
from fairlead_schema.errors import Conflict, LimitReached, ServiceUnavailable, SessionNotFound
from fairlead_schema.model import Model


class ShellAnswer(Model):
    data: ShellReceipt


async def _request_shell(request: ApiRequest[EmptyInput, ShellBody]) -> Response:
    answered = CommandAnswer[ShellReceipt]
    receipt = await send_input(request, "session.shell", RequestShell, answered)
    return answer(ShellAnswer(data=receipt))


SHELL = Operation(
    id="session.shell",
    method="POST",
    path="/api/session/{sessionID}/shell",
    scope="session:write",
    summary="Run a command of a person at the next safe boundary; an exact retry gets the same receipt.",
    respond=_request_shell,
    body=ShellBody,
    answer=ShellAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, LimitReached, ServiceUnavailable),
)
