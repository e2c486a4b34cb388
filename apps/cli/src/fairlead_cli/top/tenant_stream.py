"""The live events of all sessions, through every interruption. What happens in between is not replayed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.errors import ClientError, MalformedAnswer
from fairlead_client.frame_parser import FrameParser, FrameTooLong
from fairlead_client.received_event import ReceivedEvent, parse_event
from fairlead_schema.errors import Refused

PATH: Final = "/api/event"
SILENCE_S: Final = 45.0
PAUSE_S: Final = 1.0


async def follow_all(connection: AsyncHttpConnection) -> AsyncGenerator[ReceivedEvent, None]:
    """Every event of the caller's tenant from now on. It does not end: looks say what is wrong."""
    while True:
        try:
            async with aclosing(_read(connection)) as events:
                async for event in events:
                    yield event
        except (ClientError, Refused):
            await connection.renew_token()
        await asyncio.sleep(PAUSE_S)


async def _read(connection: AsyncHttpConnection) -> AsyncGenerator[ReceivedEvent, None]:
    parser, media = FrameParser(), "text/event-stream"
    async with connection.open(PATH, {}, media=media, read_s=SILENCE_S) as response:
        async for chunk in response.aiter_bytes():
            try:
                frames = parser.feed(chunk)
            except FrameTooLong as error:
                raise MalformedAnswer("the live stream", str(error)) from error
            for frame in frames:
                if frame.data is not None and frame.event is None:
                    yield parse_event(frame.data)
