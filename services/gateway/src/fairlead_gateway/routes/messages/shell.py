"""`POST /api/session/{sessionID}/shell`: run a person's own command, durably, once."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import message_id_from_key, send_command
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import RequestShell, ShellBody, ShellReceipt
from fairlead_schema.errors import Conflict, LimitReached, ServiceUnavailable, SessionNotFound
from fairlead_schema.model import Model
from fairlead_service import ids


class ShellAnswer(Model):
    data: ShellReceipt


async def _request_shell(request: ApiRequest[EmptyInput, ShellBody]) -> Response:
    id_ = request.body.id or message_id_from_key(request.http, request.tenant)
    # The body was validated already. An id makes the command repeatable.
    command = RequestShell.model_construct(
        session_id=request.at.session_id,
        id=id_,
        minted_id=ids.message_id() if id_ is None else None,
        command=request.body.command,
    )
    receipt = await send_command(request, "session.shell", command, CommandAnswer[ShellReceipt])
    return answer(ShellAnswer(data=receipt))


SHELL = Operation(
    id="session.shell",
    method="POST",
    path="/api/session/{sessionID}/shell",
    scope="session:write",
    summary="Run a command of a person at the next safe boundary; an exact retry gets the same receipt.",
    respond=_request_shell,
    query=EmptyInput,
    body=ShellBody,
    answer=ShellAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, LimitReached, ServiceUnavailable),
)
