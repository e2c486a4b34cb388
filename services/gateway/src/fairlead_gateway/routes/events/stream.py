"""`GET /api/session/{sessionID}/stream`: durable events and, between them, the live deltas."""

from starlette.responses import Response

from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.http.sse import Outbox, closed, frame
from fairlead_gateway.log.events import NOTICED, Translation
from fairlead_gateway.routes.events.follow import FollowQuery, Replay, streamed
from fairlead_schema import public_events
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.public_events import EventEnvelope
from fairlead_service.ids import event_id, now_ms


async def _follow(call: Call[FollowQuery, Nothing]) -> Response:
    at, deltas = call.at, call.runtime.medium().deltas
    replay = Replay(call, Translation(at, call.runtime.read, visible=NOTICED))

    async def fragments(outbox: Outbox) -> None:
        async with closed(deltas.listen(at)) as listening:
            async for delta in listening:
                # Before the replay is over a fragment has no event yet that it belongs to.
                if replay.caught_up.is_set():
                    live = public_events.public_delta(at.session_id, event_id(), delta, at=now_ms())
                    outbox.offer(frame(live))

    return streamed(call, fragments, replay.pump)


FOLLOW = Operation(
    id="session.stream",
    method="GET",
    path="/api/session/{sessionID}/stream",
    summary="Server-sent durable events with their seq as id, interleaved with live deltas.",
    respond=_follow,
    query=FollowQuery,
    body=Nothing,
    answer=EventEnvelope,
    errors=(InvalidCursor, SessionNotFound, ServiceUnavailable),
    media="text/event-stream",
)
