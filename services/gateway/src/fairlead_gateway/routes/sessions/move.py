"""Moves: work in another location, perhaps with the uncommitted changes."""

from typing import Final

from starlette.responses import Response

from fairlead_gateway.http.answers import empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.session_state import load_session, wait_until
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import MoveBody, MoveReached, MoveSession
from fairlead_schema.errors import (
    ChangesKept,
    Conflict,
    MoveRefused,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_session.state.session import Session

WAIT_S: Final = 60.0


async def _move(request: ApiRequest[EmptyInput, MoveBody]) -> Response:
    # An ingest of an earlier release does not know the field, and a plain move does not need it.
    with_changes = {"move_changes": True} if request.body.move_changes else {}
    command = MoveSession(
        session_id=request.at.session_id, location=request.body.location, **with_changes
    )
    reached = await send_command(request, "session.move", command, CommandAnswer[MoveReached])
    if command.move_changes and reached.request is not None:
        await _wait_for_runner(request, reached)
    return empty_answer()


async def _wait_for_runner(request: ApiRequest[EmptyInput, MoveBody], reached: MoveReached) -> None:
    """Wait until a runner has served the request. Raises MoveRefused, ChangesKept."""

    def is_served(session: Session) -> bool:
        open_request = session.relocation.requested
        served = open_request is None or open_request.seq != reached.request
        return session.seq >= reached.seq and served

    if not await wait_until(request.runtime, request.at, is_served, timeout_s=WAIT_S):
        text = f"The move is not done after {WAIT_S:g} s and goes on: read the session later"
        raise ServiceUnavailable(text, service="session.move")
    ended = (await load_session(request.runtime, request.at)).relocation.ended
    if ended is None or ended.seq != reached.request:
        return
    if ended.failed is not None:
        raise MoveRefused(ended.failed, request.at.session_id)
    if ended.undiscarded is not None:
        raise ChangesKept(ended.undiscarded, request.at.session_id)


MOVE = Operation(
    id="session.move",
    method="POST",
    path="/api/session/{sessionID}/move",
    scope="session:write",
    summary="Work in another location from here on; what runs at the old one is interrupted. "
    "With `moveChanges` uncommitted changes come along.",
    respond=_move,
    query=EmptyInput,
    body=MoveBody,
    answer=None,
    status=204,
    commands=True,
    errors=(Conflict, MoveRefused, ChangesKept, SessionNotFound, ServiceUnavailable),
)
