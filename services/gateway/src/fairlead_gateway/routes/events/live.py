"""`GET /api/event`: everything that happens in the sessions of the caller's tenant, as it happens."""

from typing import Final

from starlette.responses import Response

from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import FrameQueue, event_frame
from fairlead_gateway.live.tenant_hub import LiveParts, TenantSources
from fairlead_gateway.routes.events.replay import event_stream
from fairlead_schema.errors import LimitReached, ServiceUnavailable
from fairlead_schema.model import InputModel
from fairlead_schema.public_events import EventEnvelope
from fairlead_service.ids import event_id

CONNECTED: Final = "server.connected"
DISPOSED: Final = "global.disposed"
"""The last event of a gateway that stops. A client that sees it connects to another one."""


class LiveQuery(InputModel):
    fragments: bool = True
    """Whether pieces of answers come too, as the model writes them."""
    status: bool = False
    """Whether `session.status` comes too: a runner took a session, or left it, and why."""


async def _follow_all(request: ApiRequest[LiveQuery, EmptyInput]) -> Response:
    runtime = request.runtime
    parts = LiveParts(request.query.fragments, request.query.status)
    sources = TenantSources(runtime.nats().tenant_broadcasts, runtime.read_model)

    async def follow(frames: FrameQueue) -> None:
        async with runtime.tenant_hubs.enter(request.tenant, sources) as hub:
            # Nothing waits between the two, so that the client misses nothing behind this frame.
            frames.offer(_lifecycle_frame(CONNECTED))
            member = hub.join(frames, parts)
            try:
                await member.ended
            finally:
                hub.leave(member)

    stream = event_stream(request, follow, farewell=_lifecycle_frame(DISPOSED))
    stream.headers["x-content-type-options"] = "nosniff"
    return stream


def _lifecycle_frame(type_: str) -> bytes:
    return event_frame(EventEnvelope(id=event_id(), type=type_, data={}))


FOLLOW = Operation(
    id="event.subscribe",
    method="GET",
    path="/api/event",
    scope="session:read",
    summary="Server-sent live events of all sessions: no replay, no cursor.",
    respond=_follow_all,
    query=LiveQuery,
    answer=EventEnvelope,
    errors=(LimitReached, ServiceUnavailable),
    media="text/event-stream",
)
