"""Reverts: go back to a message, return, or make it final."""

from typing import Any

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.runner_wait import wait_for_runner
from fairlead_gateway.routes.sessions.plain_command import plain_command
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.revert import RevertReached, StageBody, StageRevert
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import (
    Conflict,
    MessageNotFound,
    RevertRefused,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import Model
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_session.state.session import Session

_ERRORS = (SessionNotFound, Conflict, RevertRefused, ServiceUnavailable)


class StageAnswer(Model):
    data: RevertState


async def _stage(request: ApiRequest[EmptyInput, StageBody]) -> Response:
    command = StageRevert(session_id=request.at.session_id, **dict(request.body))
    reached = await send_command(request, "revert.stage", command, CommandAnswer[RevertReached])
    session = await wait_for_revert(request, reached)
    state = None if session.profile is None else session.profile.revert
    if state is None:
        raise Conflict("Somebody else has ended the revert already", request.at.session_id)
    return answer(StageAnswer(data=state))


async def _clear(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    reached = await send_command(request, "revert.clear", command, CommandAnswer[RevertReached])
    await wait_for_revert(request, reached)
    return empty_answer()


async def wait_for_revert(request: ApiRequest[Any, Any], reached: RevertReached) -> Session:
    """The session after its runner has served the request. Raises RevertRefused."""
    session = await wait_for_runner(
        request, reached, lambda session: session.revert.requested, act="revert"
    )
    failed = session.revert.failed
    if failed is not None and failed.seq == reached.request:
        raise RevertRefused(failed.reason, request.at.session_id)
    return session


STAGE = Operation(
    id="session.revert.stage",
    method="POST",
    path="/api/session/{sessionID}/revert/stage",
    scope="session:write",
    summary="Stop the work, go back to a message, and change the files of later steps back.",
    respond=_stage,
    body=StageBody,
    answer=StageAnswer,
    commands=True,
    errors=(MessageNotFound, *_ERRORS),
)

CLEAR = Operation(
    id="session.revert.clear",
    method="POST",
    path="/api/session/{sessionID}/revert/clear",
    scope="session:write",
    summary="Undo the staged revert: the files are again as they were before it.",
    respond=_clear,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

COMMIT = plain_command(
    "revert.commit",
    "revert/commit",
    "Remove the messages after the boundary of the staged revert, for ever.",
    errors=_ERRORS,
    id_="session.revert.commit",
)
