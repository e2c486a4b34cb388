"""Reads one response with server-sent events."""

from collections.abc import AsyncGenerator
from typing import Final

import httpx

from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.errors import MalformedAnswer, refusal_of_wire
from fairlead_client.frame_parser import FrameParser, FrameTooLong, StreamFrame
from fairlead_client.received_event import ReceivedEvent, event_of, parse_event
from fairlead_client.stream_place import StreamPlace
from fairlead_schema.errors import WireError

LOG_HEADER: Final = "fairlead-log"
FAILURE_EVENT: Final = "effect/httpapi/stream/failure"
SILENCE_S: Final = 45.0
"""A live stream is silent for at most one heartbeat, so three mean that it is dead."""


async def read_response(
    connection: AsyncHttpConnection, place: StreamPlace
) -> AsyncGenerator[ReceivedEvent | str, None]:
    """The events and comments of one response. Raises the error that the stream ends with."""
    parser, media = FrameParser(), "text/event-stream"
    read_s = place.deadline.silence_s(SILENCE_S)
    async with connection.open(place.path, place.params, media=media, read_s=read_s) as response:
        place.log = response.headers.get(LOG_HEADER, place.log)
        async for chunk in connection.pieces_of(response):
            for frame in _feed(parser, chunk, response):
                place.deadline.check()
                if frame.data is None:
                    yield frame.comment or ""
                    continue
                event = await _complete(connection, _event_of(frame))
                if place.take(event) and (news := place.fragments.take(event)) is not None:
                    yield news
            if place.deadline.left_s(SILENCE_S) < read_s:
                return  # The time limit of a read is that of its connection: open one with a shorter limit.


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
            body = WireError.model_validate_json(frame.data)
        except ValueError as error:
            raise MalformedAnswer("the failure of a stream", str(error)) from error
        raise refusal_of_wire(body)
    return parse_event(frame.data, seq=frame.id)


async def _complete(connection: AsyncHttpConnection, event: ReceivedEvent) -> ReceivedEvent:
    """The whole event, if the stream showed only a part of a long one."""
    partial = (event.metadata or {}).get("partial")
    if partial is None or event.seq is None:
        return event
    try:
        page = await connection.request("GET", partial["href"], is_repeatable=True)
        whole = [event_of(raw) for raw in page["data"] if raw["durable"]["seq"] == event.seq]
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedAnswer("a long event", repr(error), seq=event.seq) from error
    return whole[0] if whole else event
