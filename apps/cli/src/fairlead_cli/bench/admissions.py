"""Admissions: over NATS and over HTTP."""

from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import orjson

from fairlead_cli.bench.measure import Timing, concurrent, sequential
from fairlead_cli.bench.wire import Wire
from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT

SESSIONS = 64
WAYS = 32
TIMEOUT_S = 30.0


async def ask(eventlog: EventLog, verb: str, body: dict[str, Any]) -> dict[str, Any]:
    """One command over NATS; its data."""
    answer: dict[str, Any] = orjson.loads(
        await eventlog.requests.request(
            subjects.api(DEFAULT_TENANT, verb), orjson.dumps(body), timeout_s=TIMEOUT_S
        )
    )
    if "error" in answer:
        raise RuntimeError(answer["error"])
    data: dict[str, Any] = answer["data"]
    return data


async def sessions(eventlog: EventLog, wanted: int) -> list[str]:
    """Fresh sessions."""
    return [(await ask(eventlog, "session.create", {}))["id"] for _ in range(wanted)]


def _body(number: int) -> dict[str, Any]:
    """Admit only: the figure is admission, not what it sets in motion."""
    return {"prompt": {"text": f"bench {number}"}, "resume": False}


async def over_nats(eventlog: EventLog, *, total: int) -> tuple[Timing, Timing]:
    """One after another, and 32 at a time over many sessions."""
    mine = await sessions(eventlog, SESSIONS)
    turn = count()

    async def admit(number: int) -> None:
        body = _body(number) | {"sessionID": mine[next(turn) % SESSIONS]}
        await ask(eventlog, "session.prompt", body)

    alone = await sequential(admit, count=total)
    mine[:] = await sessions(eventlog, SESSIONS)
    return alone, await concurrent(admit, count=total * 4, ways=WAYS)


async def over_http(url: str, eventlog: EventLog, *, total: int) -> tuple[Timing, Timing]:
    """The same through the gateway."""
    mine = await sessions(eventlog, SESSIONS)
    turn = count()
    async with AsyncExitStack() as stack:
        free = [await stack.enter_async_context(Wire.open(url)) for _ in range(WAYS)]

        async def admit(number: int) -> None:
            session, wire = mine[next(turn) % SESSIONS], free.pop()
            await wire.post(f"/api/session/{session}/prompt", _body(number))
            free.append(wire)

        alone = await sequential(admit, count=total)
        mine[:] = await sessions(eventlog, SESSIONS)
        return alone, await concurrent(admit, count=total * 2, ways=WAYS)
