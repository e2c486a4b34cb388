"""`GET /api/session/{sessionID}/stream`: durable events, interleaved with live deltas."""

from starlette.responses import Response

from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import FrameQueue, auto_close, event_frame
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.routes.events.replay import FollowQuery, Replay, event_stream
from fairlead_schema import public_events
from fairlead_schema.errors import InvalidCursor, ServiceUnavailable, SessionNotFound
from fairlead_schema.public_events import EventEnvelope
from fairlead_service.ids import event_id, now_ms


async def _follow_stream(request: ApiRequest[FollowQuery, EmptyInput]) -> Response:
    at, deltas = request.at, request.runtime.nats().deltas
    replay = Replay(
        request, EnvelopeTranslator(at, request.runtime.read_model, visible=PUBLIC_AND_NOTICE)
    )

    async def send_deltas(frames: FrameQueue) -> None:
        async with auto_close(deltas.listen(at)) as live_deltas:
            async for delta in live_deltas:
                # During the replay the client does not have the events yet that a delta belongs to.
                if replay.caught_up.is_set():
                    envelope = public_events.public_delta(
                        at.session_id, event_id(), delta, at=now_ms()
                    )
                    frames.offer(event_frame(envelope))

    return event_stream(request, send_deltas, replay.run)


FOLLOW = Operation(
    id="session.stream",
    method="GET",
    path="/api/session/{sessionID}/stream",
    scope="session:read",
    summary="Server-sent durable events with their seq as id, interleaved with live deltas.",
    respond=_follow_stream,
    query=FollowQuery,
    body=EmptyInput,
    answer=EventEnvelope,
    errors=(InvalidCursor, SessionNotFound, ServiceUnavailable),
    media="text/event-stream",
)
