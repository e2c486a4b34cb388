"""Sends a response over ASGI: at its pace, with its ending, and no longer than the client listens."""

import asyncio

from starlette.types import Receive, Send

from fairlead_cli.sim.response import SimResponse

WRITE_BYTES = 64 * 1024


async def send_response(
    response: SimResponse, receive: Receive, send: Send, *, closing: asyncio.Event
) -> None:
    """Send the whole response. A drop leaves the body open: the server then cuts the connection."""
    if response.first_byte_delay_s or response.chunk_delay_s or response.ending == "stall":
        await _send_paced(response, receive, send, closing)
        return
    await _send_head(response, send)
    body = b"".join(response.frames)
    for start in range(0, len(body), WRITE_BYTES):
        await _write(send, body[start : start + WRITE_BYTES])
    await _send_end(response, send)


async def _send_paced(
    response: SimResponse, receive: Receive, send: Send, closing: asyncio.Event
) -> None:
    disconnect = asyncio.create_task(_wait_for_disconnect(receive))
    shutdown = asyncio.create_task(closing.wait())
    try:
        await asyncio.wait(
            (disconnect, shutdown),
            timeout=response.first_byte_delay_s,
            return_when="FIRST_COMPLETED",
        )
        await _send_head(response, send)
        await _send_frames(response, send, disconnect)
        if response.ending == "stall":
            await asyncio.wait((disconnect, shutdown), return_when="FIRST_COMPLETED")
        await _send_end(response, send)
    finally:
        disconnect.cancel()
        shutdown.cancel()


async def _send_frames(response: SimResponse, send: Send, disconnect: "asyncio.Task[None]") -> None:
    """Write each frame when it is due by the clock, so that late wake-ups do not add up."""
    if not response.chunk_delay_s:
        await _write(send, b"".join(response.frames))
        return
    loop = asyncio.get_running_loop()
    due = loop.time()
    for frame in response.frames:
        if disconnect.done():
            return
        await _write(send, frame)
        due += response.chunk_delay_s
        await asyncio.sleep(due - loop.time())


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_head(response: SimResponse, send: Send) -> None:
    headers = list(response.headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _send_end(response: SimResponse, send: Send) -> None:
    if response.ending != "drop":
        await send({"type": "http.response.body", "body": b"", "more_body": False})
