"""`GET` and `PATCH /api/session/{sessionID}`: one session, its title and its metadata."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Body, Operation, Query
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.session_state import load_readable
from fairlead_gateway.log.unreadable import find_unreadable_place
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.session import DescribeBody, DescribeSession, DescriptionReached
from fairlead_schema.errors import Conflict, ServiceUnavailable, SessionNotFound, UnreadablePlace
from fairlead_schema.model import Model
from fairlead_schema.session_info import SessionInfo
from fairlead_session.info import client_session, info


class SessionAnswer(Model):
    data: SessionInfo
    unreadable: UnreadablePlace | None = None
    """From which event on the log cannot be read. The data shows what comes before."""


def describe(request: ApiRequest[Query, Body], session: SessionInfo) -> SessionInfo:
    """A session for clients, with the agent and the model of its next turn if it names none."""
    return client_session(request.runtime.settings.with_defaults(session))


async def _read_session(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    stale = await request.is_stale()
    unreadable = await find_unreadable_place(request)
    session = await request.runtime.read_model.session(request.at)
    if session is None and request.unreadable is not None:
        session = await _fold_readable(request)
    if session is None:
        raise ServiceUnavailable("The session is not projected yet", service="projector")
    data = describe(request, session)
    return answer(SessionAnswer(data=data, unreadable=unreadable), stale=stale)


async def _fold_readable(request: ApiRequest[EmptyInput, EmptyInput]) -> SessionInfo | None:
    """The session as far as the log can be read; None if not even its beginning can."""
    session = (await load_readable(request.runtime, request.at)).versioned.state
    return None if session.profile is None else info(session)


async def _describe_session(request: ApiRequest[EmptyInput, DescribeBody]) -> Response:
    # The body was validated already. Validation here would refuse absent fields.
    command = DescribeSession.model_construct(
        session_id=request.at.session_id, title=request.body.title, metadata=request.body.metadata
    )
    described = await send_command(
        request, "session.describe", command, CommandAnswer[DescriptionReached]
    )
    return answer(SessionAnswer(data=client_session(described.session)))


READ = Operation(
    id="session.read",
    method="GET",
    path="/api/session/{sessionID}",
    scope="session:read",
    summary="One session.",
    respond=_read_session,
    answer=SessionAnswer,
    serves_stored=True,
    errors=(SessionNotFound, ServiceUnavailable),
)

DESCRIBE = Operation(
    id="session.describe",
    method="PATCH",
    path="/api/session/{sessionID}",
    scope="session:write",
    summary="Name the session, and note metadata; a null removes its key, and other keys stay.",
    respond=_describe_session,
    body=DescribeBody,
    answer=SessionAnswer,
    commands=True,
    errors=(SessionNotFound, Conflict, ServiceUnavailable),
)
