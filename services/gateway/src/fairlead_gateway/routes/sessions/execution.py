"""The execution of a session: interrupt, resume, compact and wait."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_session_command
from fairlead_gateway.log.session_state import load_session, wait_until
from fairlead_gateway.routes.sessions.plain_command import plain_command
from fairlead_schema.commands.input import PromptResult
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import MessageNotFound, ServiceUnavailable, SessionNotFound
from fairlead_schema.ids import MessageId
from fairlead_schema.model import InputModel, Model
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.input.result import find_result

WAIT_S_DEFAULT = 60.0
WAIT_S_MAX = 600.0
_ERRORS = (SessionNotFound, ServiceUnavailable)


def _check_seconds(value: object) -> object:
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        raise ValueError("seconds in decimal digits are expected")
    return value


class WaitQuery(InputModel):
    timeout_s: Annotated[
        float,
        BeforeValidator(_check_seconds, json_schema_input_type=float),
        Field(gt=0, le=WAIT_S_MAX, alias="timeout_s"),
    ] = WAIT_S_DEFAULT
    message_id: MessageId | None = None
    """Answer with what became of this prompt."""


class PromptResultAnswer(Model):
    data: PromptResult


async def _interrupt(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    await send_session_command(request, "session.interrupt", command)
    # The interrupt is durable now. Wait a little, so that a client usually finds it done.
    timeout_s = request.runtime.settings.request_timeout_s
    await wait_until(
        request.runtime,
        request.at,
        lambda session: not session.execution.interrupted,
        timeout_s=timeout_s,
    )
    return empty_answer()


async def _wait(request: ApiRequest[WaitQuery, EmptyInput]) -> Response:
    timeout_s = request.query.timeout_s
    # A wait holds as much of this process as a stream does.
    with request.runtime.limits.open_stream(request.principal.name):
        is_done = await wait_until(request.runtime, request.at, is_at_rest, timeout_s=timeout_s)
    if not is_done:
        text = f"The session is not at rest after {timeout_s:g} s: wait again"
        raise ServiceUnavailable(text, service="session.wait")
    message_id = request.query.message_id
    if message_id is None:
        return empty_answer()
    session = await load_session(request.runtime, request.at)
    result = find_result(session, message_id)
    if result is None:
        raise MessageNotFound(request.at.session_id, message_id)
    return answer(PromptResultAnswer(data=result))


INTERRUPT = Operation(
    id="session.interrupt",
    method="POST",
    path="/api/session/{sessionID}/interrupt",
    scope="session:write",
    summary="Stop the active drain and keep the inbox; an idle session stays as it is.",
    respond=_interrupt,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

RESUME = plain_command(
    "session.resume",
    "resume",
    "Run at least one turn, or join the one that runs.",
    errors=_ERRORS,
    status=202,
)

COMPACT = plain_command(
    "session.compact",
    "compact",
    "Ask for active history to be replaced by a summary.",
    errors=_ERRORS,
)

WAIT = Operation(
    id="session.wait",
    method="POST",
    path="/api/session/{sessionID}/wait",
    scope="session:read",
    summary="Answer when the session is at rest; with messageID: 200 and what became of the prompt.",
    respond=_wait,
    query=WaitQuery,
    answer=None,
    status=204,
    errors=(*_ERRORS, MessageNotFound),
)
