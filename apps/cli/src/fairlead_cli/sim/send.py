"""Sends a play over ASGI: paced, faithful to its ending, and over as soon as nobody listens."""

import asyncio

from starlette.types import Receive, Send

from fairlead_cli.sim.response import Play

WRITE_BYTES = 64 * 1024


async def perform(play: Play, receive: Receive, send: Send, *, closing: asyncio.Event) -> None:
    """Send the whole answer. A drop returns with the body open: the server then cuts the line."""
    if play.first_byte_delay_s or play.chunk_delay_s or play.ending == "stall":
        await _paced(play, receive, send, closing)
        return
    await _begin(play, send)
    body = b"".join(play.frames)
    for at in range(0, len(body), WRITE_BYTES):
        await _write(send, body[at : at + WRITE_BYTES])
    await _end(play, send)


async def _paced(play: Play, receive: Receive, send: Send, closing: asyncio.Event) -> None:
    gone = asyncio.create_task(_gone(receive))
    closed = asyncio.create_task(closing.wait())
    try:
        await asyncio.wait(
            (gone, closed), timeout=play.first_byte_delay_s, return_when="FIRST_COMPLETED"
        )
        await _begin(play, send)
        await _frames(play, send, gone)
        if play.ending == "stall":
            await asyncio.wait((gone, closed), return_when="FIRST_COMPLETED")
        await _end(play, send)
    finally:
        gone.cancel()
        closed.cancel()


async def _frames(play: Play, send: Send, gone: "asyncio.Task[None]") -> None:
    """One write for each frame, against the clock, so that late wake-ups do not add up."""
    if not play.chunk_delay_s:
        await _write(send, b"".join(play.frames))
        return
    loop = asyncio.get_running_loop()
    due = loop.time()
    for frame in play.frames:
        if gone.done():
            return
        await _write(send, frame)
        due += play.chunk_delay_s
        await asyncio.sleep(due - loop.time())


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _begin(play: Play, send: Send) -> None:
    headers = list(play.headers)
    await send({"type": "http.response.start", "status": play.status, "headers": headers})


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _end(play: Play, send: Send) -> None:
    if play.ending != "drop":
        await send({"type": "http.response.body", "body": b"", "more_body": False})
