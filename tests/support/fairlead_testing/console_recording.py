"""Records what a session's stream sends while it works, and the messages of the API at its end."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

TIMEOUT_S = 60.0


async def record_session(
    http: httpx.AsyncClient,
    session_id: str,
    work: Callable[[], Awaitable[None]],
    *,
    ends_after: str = "execution.released",
) -> dict[str, Any]:
    """The stream of a session from its first event, live, until an event of a type comes after the work."""
    envelopes: list[dict[str, Any]] = []
    done = asyncio.Event()

    async def listen() -> None:
        path = f"/api/session/{session_id}/stream"
        async with http.stream("GET", path, params={"after": 0}) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    envelope = json.loads(line.removeprefix("data: "))
                    envelopes.append(envelope)
                    if done.is_set() and envelope["type"] == ends_after:
                        return

    listener = asyncio.create_task(listen())
    async with asyncio.timeout(TIMEOUT_S):
        while not envelopes:
            await asyncio.sleep(0.02)
        done.set()
        await work()
        await listener
    messages = (
        await http.get(f"/api/session/{session_id}/message", params={"limit": 200, "order": "asc"})
    ).json()["data"]
    return {"session": session_id, "stream": envelopes, "messages": messages}
