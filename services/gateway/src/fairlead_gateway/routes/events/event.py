"""`GET /api/session/{sessionID}/event`: replays public events, then sends new ones."""

from starlette.responses import Response

from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.events.replay import FollowQuery, event_stream, open_replay
from fairlead_schema.errors import CursorExpired, InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.public_events import EventEnvelope


async def _follow_events(request: ApiRequest[FollowQuery, EmptyInput]) -> Response:
    replay = await open_replay(request, with_fragments=False)
    return event_stream(request, replay.run)


FOLLOW = Operation(
    id="session.event",
    method="GET",
    path="/api/session/{sessionID}/event",
    scope="session:read",
    summary="Server-sent public events: replay after a sequence, then live.",
    respond=_follow_events,
    query=FollowQuery,
    answer=EventEnvelope,
    errors=(InvalidCursor, CursorExpired, SessionNotFound, ServiceUnavailable),
    media="text/event-stream",
)
