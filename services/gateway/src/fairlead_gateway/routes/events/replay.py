"""Replays a session from a cursor and then follows it. Both event streams use this."""

import asyncio
from contextlib import ExitStack
from typing import Annotated

from pydantic import Field

from fairlead_eventlog.ports import SessionLog
from fairlead_gateway.http.caller import watch_credentials
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput, WholeNumber, validate
from fairlead_gateway.http.sse import (
    CAUGHT_UP,
    EventStream,
    FrameQueue,
    FrameSource,
    StreamLimits,
    auto_close,
    event_frame,
)
from fairlead_gateway.log.envelopes import EnvelopeTranslator
from fairlead_schema.errors import InvalidCursor
from fairlead_schema.model import InputModel


class FollowQuery(InputModel):
    after: Annotated[WholeNumber, Field(ge=0)] | None = None


class _Headers(InputModel):
    last_event_id: Annotated[WholeNumber, Field(ge=0, alias="Last-Event-ID")] = 0


class Replay:
    """Sends every visible event after a cursor, and every later one."""

    def __init__(
        self, request: ApiRequest[FollowQuery, EmptyInput], translator: EnvelopeTranslator
    ) -> None:
        self._at = request.at
        self._log: SessionLog = request.runtime.nats().log
        self._translator = translator
        self._after = _cursor(request)
        self._head = request.head.seq
        self.caught_up = asyncio.Event()

    async def run(self, frames: FrameQueue) -> None:
        """Replay and follow until cancelled, at the pace of the client."""
        await self._mark_caught_up(frames, self._after)
        async with auto_close(self._log.tail(self._at, after=self._after)) as tail:
            async for stored in tail:
                for envelope in await self._translator.envelopes(stored, after=self._after):
                    await frames.put(event_frame(envelope))
                await self._mark_caught_up(frames, stored.head.seq)

    async def _mark_caught_up(self, frames: FrameQueue, seq: int) -> None:
        if seq >= self._head and not self.caught_up.is_set():
            self.caught_up.set()
            await frames.put(CAUGHT_UP)


def event_stream(
    request: ApiRequest[FollowQuery, EmptyInput], *sources: FrameSource
) -> EventStream:
    """The streaming answer for these sources. It ends with the caller's credentials.

    Raises RateLimited if the caller has too many streams.
    """
    runtime, settings = request.runtime, request.runtime.settings

    async def end_with_credentials(_frames: FrameQueue) -> None:
        await watch_credentials(runtime, request.http, request.principal)

    held = ExitStack()
    held.enter_context(runtime.limits.open_stream(request.principal.name))
    return EventStream(
        end_with_credentials,
        *sources,
        shutdown=runtime.shutdown,
        limits=StreamLimits(
            settings.heartbeat_s,
            settings.stall_s,
            settings.stream_frames_max,
            settings.stream_bytes_max,
        ),
        held=held,
    )


def _cursor(request: ApiRequest[FollowQuery, EmptyInput]) -> int:
    """The cursor. The query wins over the header. Raises InvalidCursor beyond the head."""
    after = request.query.after
    if after is None:
        header = request.http.headers.get("last-event-id")
        raw = {} if header is None else {"Last-Event-ID": header}
        after = validate(_Headers, raw, "Headers").last_event_id
    head = request.head.seq
    if after > head:
        raise InvalidCursor(f"Cursor {after} is beyond the end of the session, {head}")
    return after
