"""`GET /api/session/{sessionID}/event`: replay of public events, then new ones as they land."""

from starlette.responses import Response

from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.events import PUBLIC, Translation
from fairlead_gateway.routes.events.follow import FollowQuery, Replay, streamed
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.public_events import EventEnvelope


async def _follow(call: Call[FollowQuery, Nothing]) -> Response:
    translation = Translation(call.at, call.runtime.read, visible=PUBLIC)
    return streamed(call, Replay(call, translation).pump)


FOLLOW = Operation(
    id="session.event",
    method="GET",
    path="/api/session/{sessionID}/event",
    summary="Server-sent public events: replay after a sequence, then live.",
    respond=_follow,
    query=FollowQuery,
    body=Nothing,
    answer=EventEnvelope,
    errors=(InvalidCursor, SessionNotFound, ServiceUnavailable),
    media="text/event-stream",
)
