"""Follows the events of a session through every interruption, without a gap and without a double."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import httpx

from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.runtime import sleep
from fairlead_client.errors import ClientError, MalformedAnswer
from fairlead_client.frame_parser import FrameParser, FrameTooLong, StreamFrame
from fairlead_client.received_event import ReceivedEvent, event_of, parse_event
from fairlead_client.retry_policy import is_passing, pause_s
from fairlead_client.stream_place import StreamPlace
from fairlead_schema.errors import Refused, ServiceUnavailable, Unauthorized, WireError

LOG_HEADER: Final = "fairlead-log"
FAILURE_EVENT: Final = "effect/httpapi/stream/failure"
CAUGHT_UP: Final = "caught-up"
SILENCE_S: Final = 45.0
"""A live stream is silent for at most one heartbeat, so three mean that it is dead."""


async def follow_stream(
    connection: AsyncHttpConnection, place: StreamPlace
) -> AsyncGenerator[ReceivedEvent | str, None]:
    """Every event after the place, and each comment of the stream. It does not end by itself.

    Before the first answer the patience of the connection holds. After it the stream is opened again for
    ever. Raises Refused if the server has nothing to follow, and ClientError.
    """
    failing_since: float | None = None
    failures, was_open = 0, False
    while True:
        try:
            async with aclosing(_read_stream(connection, place)) as stream:
                async for item in stream:
                    failing_since, failures, was_open = None, 0, True
                    connection.failure = None
                    yield item
            error: ClientError | Refused = ServiceUnavailable("The stream ended")
        except Unauthorized as refusal:
            if not await connection.renew_token() and not was_open:
                raise
            error = refusal
        except (ClientError, Refused) as problem:
            if not is_passing(problem, is_repeatable=True):
                raise
            error = problem
        connection.failure = error
        now = time.monotonic()
        failing_since = now if failing_since is None else failing_since
        is_lasting = not was_open or isinstance(error, Unauthorized)
        patience_s = connection.patience_s
        if is_lasting and patience_s is not None and now - failing_since > patience_s:
            raise error
        place.deadline.check()
        place.fragments.reconnect()
        await sleep(pause_s(failures, error, None))
        failures += 1


async def _read_stream(
    connection: AsyncHttpConnection, place: StreamPlace
) -> AsyncGenerator[ReceivedEvent | str, None]:
    """The events and comments of one response. Raises the error that the stream ends with."""
    parser, media = FrameParser(), "text/event-stream"
    read_s = place.deadline.left_s(SILENCE_S)
    async with connection.open(place.path, place.params, media=media, read_s=read_s) as response:
        place.log = response.headers.get(LOG_HEADER, place.log)
        async for chunk in response.aiter_bytes():
            for frame in _feed(parser, chunk, response):
                place.deadline.check()
                if frame.data is None:
                    yield frame.comment or ""
                    continue
                event = await _complete(connection, _event_of(frame))
                if place.take(event) and (news := place.fragments.take(event)) is not None:
                    yield news


def _feed(parser: FrameParser, chunk: bytes, response: httpx.Response) -> list[StreamFrame]:
    try:
        return parser.feed(chunk)
    except FrameTooLong as error:
        raise MalformedAnswer(f"the stream of {response.url}", str(error)) from error


def _event_of(frame: StreamFrame) -> ReceivedEvent:
    """The event of a frame. Raises the refusal that the frame holds instead."""
    assert frame.data is not None, "a comment holds no event"
    if frame.event == FAILURE_EVENT:
        try:
            refusal = Refused.from_wire(WireError.model_validate_json(frame.data))
        except ValueError as error:
            raise MalformedAnswer("the failure of a stream", str(error)) from error
        raise refusal
    return parse_event(frame.data, seq=frame.id)


async def _complete(connection: AsyncHttpConnection, event: ReceivedEvent) -> ReceivedEvent:
    """The whole event, if the stream showed only a part of a long one."""
    partial = (event.metadata or {}).get("partial")
    if partial is None or event.seq is None:
        return event
    page = await connection.request("GET", partial["href"], is_repeatable=True)
    whole = [event_of(raw) for raw in page["data"] if raw["durable"]["seq"] == event.seq]
    return whole[0] if whole else event
