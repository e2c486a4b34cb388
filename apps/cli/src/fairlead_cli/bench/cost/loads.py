"""The loads whose cost is measured: text turns, turns with a call, admissions, further listeners."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from fairlead_cli.bench.admissions import create_sessions, send_command
from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.turns import TURN_S, Listener, open_listener
from fairlead_eventlog.connection import EventLog

SESSIONS: Final = 8
CHUNKS: Final = 20
_WORDS: Final = " ".join(["word"] * CHUNKS)

Act: TypeAlias = Callable[[int], Awaitable[None]]
"""One unit of a load; its argument is the number of the unit."""


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """A running stack, as a load needs it."""

    url: str
    eventlog: EventLog


async def open_text_turns(target: LoadTarget, stack: AsyncExitStack) -> Act:
    """A prompt that is answered by 20 chunks in one write, without tools."""
    return await open_turns(target, stack, text_prompt, ends=1)


async def open_tool_turns(target: LoadTarget, stack: AsyncExitStack) -> Act:
    """A prompt whose first step makes one call of a tool that does nothing."""
    return await open_turns(target, stack, tool_prompt, ends=2)


async def open_admissions(target: LoadTarget, _stack: AsyncExitStack) -> Act:
    """A prompt over NATS that is admitted and starts no turn."""
    sessions = await create_sessions(target.eventlog, SESSIONS)

    async def admit(number: int) -> None:
        body = {"prompt": {"text": f"admission {number}"}, "resume": False}
        session = sessions[number % SESSIONS]
        await send_command(target.eventlog, "session.prompt", body | {"sessionID": session})

    return admit


async def open_listened_turns(target: LoadTarget, stack: AsyncExitStack, *, listeners: int) -> Act:
    """A text turn of one session, which several clients follow."""
    (session,) = await create_sessions(target.eventlog, 1)
    first = await stack.enter_async_context(open_listener(target.url, session))
    for _ in range(listeners - 1):
        await stack.enter_async_context(_discard_stream(target.url, session))

    async def take(number: int) -> None:
        await first.take_turn(text_prompt(number))

    return take


def text_prompt(number: int) -> str:
    return f"turn {number} [[sim: chunks={CHUNKS} answer='{_WORDS}']]"


def tool_prompt(number: int) -> str:
    # Each call has its own key, because a repeated call would be stopped.
    args = json.dumps({"key": f"cost-{number}"})
    return f"[[sim: tool=probe_pure args='{args}' ; answer=done]]"


async def open_turns(
    target: LoadTarget,
    stack: AsyncExitStack,
    prompt: Callable[[int], str],
    *,
    ends: int,
    stream: str = "event",
) -> Act:
    """Turns of eight sessions, one listener each; a turn is over after so many ends of steps."""
    idle: asyncio.Queue[Listener] = asyncio.Queue()
    for session in await create_sessions(target.eventlog, SESSIONS):
        opening = open_listener(target.url, session, stream=stream)
        idle.put_nowait(await stack.enter_async_context(opening))

    async def take(number: int) -> None:
        listener = await idle.get()
        await listener.take_turn(prompt(number))
        for _ in range(ends - 1):
            async with asyncio.timeout(TURN_S):
                await listener.turn_ends.get()
        idle.put_nowait(listener)

    return take


@asynccontextmanager
async def _discard_stream(url: str, session: str) -> AsyncIterator[None]:
    """A client that reads a session's stream and throws the bytes away."""
    connected = asyncio.Event()

    async def read() -> None:
        async with LoadConnection.open(url) as connection:
            async for _piece in connection.stream(f"/api/session/{session}/event"):
                connected.set()

    task = asyncio.create_task(read())
    try:
        async with asyncio.timeout(TURN_S):
            await connected.wait()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
