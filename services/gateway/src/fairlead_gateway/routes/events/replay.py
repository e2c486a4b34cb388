"""Replays a session from a cursor and then follows it. Both event streams use this."""

import asyncio
from contextlib import ExitStack
from typing import Annotated, Any, Final

from pydantic import Field

from fairlead_gateway.http.caller import watch_credentials
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput, Text, WholeNumber, validate
from fairlead_gateway.http.sse import (
    CAUGHT_UP,
    EventStream,
    FrameQueue,
    FrameSource,
    StreamLimits,
    auto_close,
)
from fairlead_gateway.live.replay_frames import LogReplay
from fairlead_gateway.live.session_hub import HubSources, SessionHub
from fairlead_gateway.log.envelopes import PUBLIC, PUBLIC_AND_NOTICE, EnvelopeTranslator
from fairlead_gateway.log.restored_log import check_cursor, end_with_restore, log_headers
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.log.unreadable import find_end, find_start
from fairlead_schema.errors import InvalidCursor
from fairlead_schema.model import InputModel

READ_AGAIN_S: Final = 0.05


class FollowQuery(InputModel):
    after: Annotated[WholeNumber, Field(ge=0)] | None = None
    log: Text | None = None
    """The incarnation of the log that the cursor belongs to."""


class _Headers(InputModel):
    last_event_id: Annotated[WholeNumber, Field(ge=0, alias="Last-Event-ID")] = 0


class Replay:
    """Sends every visible event after a cursor, then joins the session's hub for all later ones."""

    def __init__(
        self, request: ApiRequest[FollowQuery, EmptyInput], *, with_fragments: bool
    ) -> None:
        """With fragments, the client also gets notices and live deltas."""
        nats, self._read_model = request.runtime.nats(), request.runtime.read_model
        self._request = request
        self._sources = HubSources(
            nats.log, nats.deltas, self._read_model, nats.snapshots, nats.open_texts
        )
        self._with_fragments = with_fragments
        visible = PUBLIC_AND_NOTICE if with_fragments else PUBLIC
        self._translator = EnvelopeTranslator(request.at, self._read_model, visible=visible)
        self._after = _cursor(request)
        self._seq = self._after

    async def run(self, frames: FrameQueue) -> None:
        """Replay and follow until cancelled. The replay goes at the pace of the client."""
        request = self._request
        if request.unreadable is not None:
            # The end of the log cannot be read, so that there is nothing to follow.
            await self._replay(frames)
            raise request.unreadable
        hubs, head = request.runtime.hubs, request.head
        async with hubs.enter(request.at, self._sources, head=head) as hub:
            if self._with_fragments:
                await hub.follow_fragments()
            await self._catch_up(frames, hub, head.seq)
            # Nothing waits between the last look at the hub and this.
            frames.offer(CAUGHT_UP)
            member = hub.join(frames, seq=self._seq, with_fragments=self._with_fragments)
            try:
                await member.ended
            finally:
                hub.leave(member)

    async def _catch_up(self, frames: FrameQueue, hub: SessionHub, head: int) -> None:
        """Send what the log has until the client has all that the hub has passed on."""
        while True:
            await frames.wait_until_half_empty()
            missing = max(head, hub.seq)
            if self._seq >= missing:
                return
            before = self._seq
            await self._replay(frames)
            if self._seq == before:
                if hub.error is not None:
                    raise hub.error  # What is missing will not come: the session was stored.
                # A replica of the log may lag behind what the hub has seen.
                await asyncio.sleep(READ_AGAIN_S)

    async def _replay(self, frames: FrameQueue) -> None:
        """Send everything after the last event that was sent, up to the end of the log."""
        start, reach = await find_start(self._request, self._seq), await find_end(self._request)
        log, at = self._sources.log, self._request.at
        replay = LogReplay(log, at, self._translator, start=start)
        async with auto_close(replay.read(after=self._seq, reach=reach)) as pieces:
            async for piece in pieces:
                if piece.frames:
                    await frames.put(piece.frames)
                self._seq = max(self._seq, piece.seq)


async def open_replay(
    request: ApiRequest[FollowQuery, EmptyInput], *, with_fragments: bool
) -> Replay:
    """The replay of a request. Raises InvalidCursor, CursorExpired, SessionIsStored.

    While a restore is not complete, a cursor may be beyond the end, and is right all the same.
    """
    try:
        return Replay(request, with_fragments=with_fragments)
    except InvalidCursor:
        await load_session(request.runtime, request.at)
        raise


def event_stream(
    request: ApiRequest[Any, Any],
    *sources: FrameSource,
    farewell: bytes = b"",
    tells_failure: bool = True,
) -> EventStream:
    """The streaming answer for these sources. It ends with the caller's credentials.

    `farewell` is the last frame if the process stops. Raises RateLimited if the caller has too many streams.
    """
    runtime, settings = request.runtime, request.runtime.settings

    async def end_with_credentials(_frames: FrameQueue) -> None:
        await watch_credentials(runtime, request.http, request.principal)

    async def end_after_restore(_frames: FrameQueue) -> None:
        await end_with_restore(runtime)

    held = ExitStack()
    held.enter_context(runtime.limits.open_stream(request.principal.name))
    return EventStream(
        end_with_credentials,
        end_after_restore,
        *sources,
        shutdown=runtime.shutdown,
        limits=StreamLimits(
            settings.heartbeat_s,
            settings.stall_s,
            settings.stream_frames_max,
            settings.stream_bytes_max,
        ),
        held=held,
        headers=log_headers(runtime),
        farewell=farewell,
        tells_failure=tells_failure,
    )


def _cursor(request: ApiRequest[FollowQuery, EmptyInput]) -> int:
    """The cursor. The query wins over the header. Raises InvalidCursor, CursorExpired."""
    after = request.query.after
    if after is None:
        header = request.http.headers.get("last-event-id")
        raw = {} if header is None else {"Last-Event-ID": header}
        after = validate(_Headers, raw, "Headers").last_event_id
    head = None if request.unreadable is not None else request.head.seq
    check_cursor(request.runtime, after=after, log=request.query.log, head=head)
    return after
