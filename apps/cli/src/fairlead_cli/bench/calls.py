"""Calls: what a tool that does nothing adds to the turn that calls it."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final, cast

from fairlead_cli.bench.admissions import ask, sessions
from fairlead_cli.bench.measure import Timing, timing
from fairlead_cli.bench.turns import TURN_S, listening
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.port import Stored
from fairlead_schema.events import ExecutionReleased, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

# The probes are there, and nobody is asked.
CONFIGURATION: Final = """
[tools]
probes = true

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""


def configured(place: Path) -> Path:
    """A configuration whose model may call a tool that does nothing."""
    path = place / "bench.toml"
    location = f"[location]\ndefault = {json.dumps(str(place))}\n"
    path.write_text(f"{CONFIGURATION}\n{location}")
    return path


async def calls(url: str, eventlog: EventLog, *, each: int) -> tuple[Timing, Timing]:
    """Turns with one call each, whole and over HTTP; and from a call to its settlement.

    The second is heard on the log alone. Whoever follows a session over HTTP has its events told
    again while the call runs, and on a machine with two cores that costs more than the call.
    """
    return await _whole(url, eventlog, each), await _settled(eventlog, each)


def _prompt(number: int) -> str:
    # A new key each time: the same call again and again would be stopped.
    args = json.dumps({"key": f"k{number}"})
    return f"[[sim: tool=probe_pure args='{args}' ; answer=done]]"


async def _whole(url: str, eventlog: EventLog, each: int) -> Timing:
    (session,) = await sessions(eventlog, 1)
    whole: list[float] = []
    async with listening(url, session) as listener:
        for number in range(-2, each):
            began = time.perf_counter()
            await listener.take(_prompt(number))
            async with asyncio.timeout(TURN_S):
                ended = await listener.ended.get()
            if number >= 0:
                whole.append(ended - began)
    return timing(whole, sum(whole))


async def _settled(eventlog: EventLog, each: int) -> Timing:
    (session,) = await sessions(eventlog, 1)
    settled: asyncio.Queue[float] = asyncio.Queue()
    hearing = asyncio.create_task(_hear(eventlog, Address(DEFAULT_TENANT, session), settled))
    added: list[float] = []
    try:
        for number in range(-2, each):
            body = {"sessionID": session, "prompt": {"text": _prompt(number)}}
            await ask(eventlog, "session.prompt", body)
            async with asyncio.timeout(TURN_S):
                took = await settled.get()
            if number >= 0:
                added.append(took)
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
    return timing(added, sum(added))


async def _hear(eventlog: EventLog, at: Address, settled: asyncio.Queue[float]) -> None:
    """Tell how long each call took once its session rests."""
    called = took = 0.0
    tail = cast("AsyncGenerator[Stored, None]", eventlog.log.tail(at, after=0))
    async with aclosing(tail):
        async for stored in tail:
            now = time.perf_counter()
            for recorded in stored.commit.events:
                match recorded.event:
                    case ToolCalled():
                        called = now
                    case ToolSucceeded():
                        took = now - called
                    case ExecutionReleased():
                        settled.put_nowait(took)
                    case ToolFailed():
                        raise RuntimeError(recorded.event.error.message)
                    case _:
                        pass
