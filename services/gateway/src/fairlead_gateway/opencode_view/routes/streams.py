"""The streams of the terminal client: everything of its tenant, or one directory."""

import asyncio

from starlette.responses import Response

from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import FrameQueue
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    directory_of,
    view_operation,
)
from fairlead_gateway.opencode_view.view_client import ViewClient
from fairlead_gateway.opencode_view.view_hubs import ViewHubs
from fairlead_gateway.routes.events.replay import event_stream


class StreamRoutes:
    """The two streams. Both end with the caller's credentials, as every stream does."""

    def __init__(self, hubs: ViewHubs) -> None:
        self._hubs = hubs

    def operations(self) -> tuple[AnyOperation, ...]:
        return (
            view_operation("GET", "/global/event", self._follow_all, scope="session:read"),
            view_operation("GET", "/event", self._follow_directory, scope="session:read"),
        )

    async def _follow_all(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        return self._stream(request, is_global=True)

    async def _follow_directory(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        return self._stream(request, is_global=False)

    def _stream(self, request: ApiRequest[ViewQuery, EmptyInput], *, is_global: bool) -> Response:
        runtime = request.runtime
        runtime.nats()

        async def follow(frames: FrameQueue) -> None:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            client = ViewClient(frames, ended, is_global, directory_of(request))
            async with self._hubs.enter(runtime, request.tenant) as hub:
                await hub.follow(client)

        # A frame that the client does not know ends its reading for ever.
        return event_stream(request, follow, tells_failure=False)
