"""Operations that send a session one command without a body, and have nothing to answer."""

from typing import Literal

from starlette.responses import Response

from fairlead_gateway.http.answers import empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_session_command
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Refused


def plain_command(
    verb: str,
    path: str,
    summary: str,
    *,
    errors: tuple[type[Refused], ...],
    id_: str | None = None,
    status: Literal[202, 204] = 204,
) -> Operation[EmptyInput, EmptyInput]:
    """`POST /api/session/{sessionID}/<path>`, which sends this verb."""

    async def respond(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
        command = SessionCommand(session_id=request.at.session_id)
        await send_session_command(request, verb, command)
        return empty_answer(status)

    return Operation(
        id=id_ or verb,
        method="POST",
        path=f"/api/session/{{sessionID}}/{path}",
        scope="session:write",
        summary=summary,
        respond=respond,
        answer=None,
        status=status,
        commands=True,
        errors=errors,
    )
