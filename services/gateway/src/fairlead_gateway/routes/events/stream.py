"""`GET /api/session/{sessionID}/stream`: durable events, interleaved with live deltas."""

from starlette.responses import Response

from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes.events.replay import FollowQuery, event_stream, open_replay
from fairlead_schema.errors import CursorExpired, InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.public_events import EventEnvelope


async def _follow_stream(request: ApiRequest[FollowQuery, EmptyInput]) -> Response:
    replay = await open_replay(request, with_fragments=True)
    return event_stream(request, replay.run)


FOLLOW = Operation(
    id="session.stream",
    method="GET",
    path="/api/session/{sessionID}/stream",
    scope="session:read",
    summary="Server-sent durable events with their seq as id, interleaved with live deltas.",
    respond=_follow_stream,
    query=FollowQuery,
    answer=EventEnvelope,
    errors=(InvalidCursor, CursorExpired, SessionNotFound, ServiceUnavailable),
    media="text/event-stream",
)
