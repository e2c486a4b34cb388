"""Sessions that come from a session: `POST …/fork` makes one, `GET …/children` lists sub-agents."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, WholeNumber
from fairlead_gateway.log.commands import send_command, session_id_from_key
from fairlead_gateway.reads.cursors import SESSIONS_MAX
from fairlead_gateway.reads.read_model import Order
from fairlead_gateway.routes.sessions.session import SessionAnswer
from fairlead_gateway.routes.sessions.sessions import SessionPage, SessionsQuery, list_sessions
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import ForkBody, ForkSession
from fairlead_schema.errors import (
    Conflict,
    InvalidCursor,
    LimitReached,
    MessageNotFound,
    ReplayConflict,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import InputModel
from fairlead_schema.session_info import SessionInfo
from fairlead_service import ids
from fairlead_session.info import client_session


class ChildrenQuery(InputModel):
    limit: Annotated[WholeNumber, Field(ge=1, le=SESSIONS_MAX)] | None = None
    order: Order | None = None
    cursor: str | None = None


async def _fork(request: ApiRequest[EmptyInput, ForkBody]) -> Response:
    body, session_id = request.body, request.at.session_id
    id_ = body.id or session_id_from_key(request.http, request.tenant) or ids.session_id()
    command = ForkSession.model_construct(session_id=session_id, message_id=body.message_id, id=id_)
    forked = await send_command(request, "session.fork", command, CommandAnswer[SessionInfo])
    return answer(SessionAnswer(data=client_session(forked)))


async def _children(request: ApiRequest[ChildrenQuery, EmptyInput]) -> Response:
    parent, asked = request.at.session_id, request.query
    query = SessionsQuery.model_construct(
        limit=asked.limit,
        order=asked.order,
        cursor=asked.cursor,
        parent_id=parent,
        archived="true",
    )
    return await list_sessions(request, query, parent=parent)


FORK = Operation(
    id="session.fork",
    method="POST",
    path="/api/session/{sessionID}/fork",
    scope="session:write",
    summary="A new session that begins with a copy of this one, up to a message.",
    respond=_fork,
    body=ForkBody,
    answer=SessionAnswer,
    commands=True,
    errors=(
        SessionNotFound,
        MessageNotFound,
        Conflict,
        ReplayConflict,
        LimitReached,
        ServiceUnavailable,
    ),
)

CHILDREN = Operation(
    id="session.children",
    method="GET",
    path="/api/session/{sessionID}/children",
    scope="session:read",
    summary="The sessions of the sub-agents of a session, in pages.",
    respond=_children,
    query=ChildrenQuery,
    answer=SessionPage,
    serves_stored=True,
    errors=(InvalidCursor, SessionNotFound, ServiceUnavailable),
)
