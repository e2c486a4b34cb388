"""Moves: work in another location, perhaps with the uncommitted changes."""

from starlette.responses import Response

from fairlead_gateway.http.answers import empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.runner_wait import wait_for_runner
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import MoveBody, MoveReached, MoveSession
from fairlead_schema.errors import (
    ChangesKept,
    Conflict,
    MoveRefused,
    ServiceUnavailable,
    SessionNotFound,
)


async def _move(request: ApiRequest[EmptyInput, MoveBody]) -> Response:
    # An ingest of an earlier release does not know the other fields, and a plain move needs none.
    command = MoveSession(
        session_id=request.at.session_id,
        **{name: value for name, value in request.body if value},
    )
    reached = await send_command(request, "session.move", command, CommandAnswer[MoveReached])
    if command.move_changes and reached.request is not None:
        await _wait_for_runner(request, reached)
    return empty_answer()


async def _wait_for_runner(request: ApiRequest[EmptyInput, MoveBody], reached: MoveReached) -> None:
    """Wait until a runner has served the request. Raises MoveRefused, ChangesKept."""
    session = await wait_for_runner(
        request, reached, lambda session: session.relocation.requested, act="move"
    )
    ended = session.relocation.ended
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
    summary="Work in another location or pool from here on; what runs at the old one is interrupted. "
    "With `moveChanges` uncommitted changes come along.",
    respond=_move,
    body=MoveBody,
    answer=None,
    status=204,
    commands=True,
    errors=(Conflict, MoveRefused, ChangesKept, SessionNotFound, ServiceUnavailable),
)
