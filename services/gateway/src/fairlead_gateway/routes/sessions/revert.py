"""Reverts: go back to a message, return, or make it final."""

from typing import Final

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command, send_session_command
from fairlead_gateway.log.session_state import load_session, wait_until
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
from fairlead_schema.events.revert import RevertState
from fairlead_schema.model import Model
from fairlead_session.state.session import Session

WAIT_S: Final = 60.0
_ERRORS = (SessionNotFound, Conflict, RevertRefused, ServiceUnavailable)


class StageAnswer(Model):
    data: RevertState


async def _stage(request: ApiRequest[EmptyInput, StageBody]) -> Response:
    command = StageRevert(session_id=request.at.session_id, **dict(request.body))
    reached = await send_command(request, "revert.stage", command, CommandAnswer[RevertReached])
    session = await _wait_for_runner(request, reached)
    state = None if session.profile is None else session.profile.revert
    if state is None:
        raise Conflict("Somebody else has ended the revert already", request.at.session_id)
    return answer(StageAnswer(data=state))


async def _clear(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    reached = await send_command(request, "revert.clear", command, CommandAnswer[RevertReached])
    await _wait_for_runner(request, reached)
    return empty_answer()


async def _commit(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    command = SessionCommand(session_id=request.at.session_id)
    await send_session_command(request, "revert.commit", command)
    return empty_answer()


async def _wait_for_runner(
    request: ApiRequest[EmptyInput, StageBody] | ApiRequest[EmptyInput, EmptyInput],
    reached: RevertReached,
) -> Session:
    """The session after its runner has served the request. Raises RevertRefused."""

    def is_served(session: Session) -> bool:
        open_request = session.revert.requested
        served = open_request is None or open_request.seq != reached.request
        return session.seq >= reached.seq and served

    if not await wait_until(request.runtime, request.at, is_served, timeout_s=WAIT_S):
        text = f"The revert is not done after {WAIT_S:g} s and goes on: read the session later"
        raise ServiceUnavailable(text, service="session.revert")
    session = await load_session(request.runtime, request.at)
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
    query=EmptyInput,
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
    query=EmptyInput,
    body=EmptyInput,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

COMMIT = Operation(
    id="session.revert.commit",
    method="POST",
    path="/api/session/{sessionID}/revert/commit",
    scope="session:write",
    summary="Remove the messages after the boundary of the staged revert, for ever.",
    respond=_commit,
    query=EmptyInput,
    body=EmptyInput,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
