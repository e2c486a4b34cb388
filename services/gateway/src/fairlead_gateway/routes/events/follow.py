"""What both event streams share: where they start, how they replay and then tail a session."""

import asyncio
from typing import Annotated

from pydantic import Field

from fairlead_eventlog.ports import SessionLog
from fairlead_gateway.http.incoming import Decimal, Nothing, checked
from fairlead_gateway.http.operation import Call
from fairlead_gateway.http.sse import CAUGHT_UP, EventStream, Outbox, Source, closed, frame
from fairlead_gateway.log.events import Translation
from fairlead_schema.errors import InvalidCursor
from fairlead_schema.model import InputModel


class FollowQuery(InputModel):
    after: Annotated[Decimal, Field(ge=0)] | None = None


class _Headers(InputModel):
    last_event_id: Annotated[Decimal, Field(ge=0, alias="Last-Event-ID")] = 0


class Replay:
    """The durable half of a stream: every visible event after a cursor, and all that follow."""

    def __init__(self, call: Call[FollowQuery, Nothing], translation: Translation) -> None:
        self._at = call.at
        self._log: SessionLog = call.runtime.medium().log
        self._translation = translation
        self._after = _after(call)
        self._head = call.head.seq
        self.caught_up = asyncio.Event()

    async def pump(self, outbox: Outbox) -> None:
        """Replay and tail for ever, at the pace of the client."""
        await self._mark(outbox, self._after)
        async with closed(self._log.tail(self._at, after=self._after)) as tail:
            async for stored in tail:
                for envelope in await self._translation.envelopes(stored, after=self._after):
                    await outbox.put(frame(envelope))
                await self._mark(outbox, stored.head.seq)

    async def _mark(self, outbox: Outbox, seq: int) -> None:
        if seq >= self._head and not self.caught_up.is_set():
            self.caught_up.set()
            await outbox.put(CAUGHT_UP)


def streamed(call: Call[FollowQuery, Nothing], *sources: Source) -> EventStream:
    """The answer that these sources fill."""
    settings = call.runtime.settings
    return EventStream(
        *sources,
        closing=call.runtime.closing,
        heartbeat_s=settings.heartbeat_s,
        stall_s=settings.stall_s,
        frames_max=settings.stream_frames_max,
    )


def _after(call: Call[FollowQuery, Nothing]) -> int:
    """The cursor: the query wins over the header. Raises InvalidCursor for one beyond the head."""
    after = call.query.after
    if after is None:
        sent = call.request.headers.get("last-event-id")
        raw = {} if sent is None else {"Last-Event-ID": sent}
        after = checked(_Headers, raw, "Headers").last_event_id
    head = call.head.seq
    if after > head:
        raise InvalidCursor(f"Cursor {after} is beyond the end of the session, {head}")
    return after
