"""Times admissions of prompts over NATS and over HTTP."""

from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import orjson

from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.measurement import Timing, time_concurrent, time_sequential
from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT

SESSIONS = 64
WAYS = 32
TIMEOUT_S = 30.0


async def send_command(eventlog: EventLog, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send one command over NATS and return the data of its answer."""
    answer: dict[str, Any] = orjson.loads(
        await eventlog.requests.request(
            subjects.api(DEFAULT_TENANT, verb), orjson.dumps(body), timeout_s=TIMEOUT_S
        )
    )
    if "error" in answer:
        raise RuntimeError(answer["error"])
    data: dict[str, Any] = answer["data"]
    return data


async def create_sessions(eventlog: EventLog, count: int) -> list[str]:
    """Create new sessions and return their ids."""
    return [(await send_command(eventlog, "session.create", {}))["id"] for _ in range(count)]


def _body(number: int) -> dict[str, Any]:
    """A prompt that is admitted and starts no turn, so that only the admission is timed."""
    return {"prompt": {"text": f"bench {number}"}, "resume": False}


async def time_nats_admissions(eventlog: EventLog, *, total: int) -> tuple[Timing, Timing]:
    """Admissions one after another, and 32 at a time over many sessions."""
    session_ids = await create_sessions(eventlog, SESSIONS)
    numbers = count()

    async def admit(number: int) -> None:
        body = _body(number) | {"sessionID": session_ids[next(numbers) % SESSIONS]}
        await send_command(eventlog, "session.prompt", body)

    alone = await time_sequential(admit, count=total)
    session_ids[:] = await create_sessions(eventlog, SESSIONS)
    return alone, await time_concurrent(admit, count=total * 4, ways=WAYS)


async def time_http_admissions(
    url: str, eventlog: EventLog, *, total: int
) -> tuple[Timing, Timing]:
    """The same through the gateway."""
    session_ids = await create_sessions(eventlog, SESSIONS)
    numbers = count()
    async with AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(LoadConnection.open(url)) for _ in range(WAYS)]

        async def admit(number: int) -> None:
            session_id, connection = session_ids[next(numbers) % SESSIONS], idle.pop()
            await connection.post(f"/api/session/{session_id}/prompt", _body(number))
            idle.append(connection)

        alone = await time_sequential(admit, count=total)
        session_ids[:] = await create_sessions(eventlog, SESSIONS)
        return alone, await time_concurrent(admit, count=total * 2, ways=WAYS)
