"""Times admissions of prompts over NATS and over HTTP."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import orjson

from fairlead_cli.bench.load_connection import LoadConnection
from fairlead_cli.bench.measurement import (
    Timing,
    merge_rounds,
    time_concurrent,
    time_in_turn,
    time_sequential,
)
from fairlead_cli.bench.server_limits import bench_stream, publish
from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import DEFAULT_TENANT

SESSIONS = 64
WAYS = 32
TIMEOUT_S = 30.0
# A round of fewer is over before the machine has found its pace.
TOGETHER_MIN = 4000


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


@dataclass(frozen=True, slots=True)
class ComparedAdmissions:
    """Admissions over NATS beside raw publishes: one after another, and 32 at a time."""

    raw: Timing
    raw_together: Timing
    alone: Timing
    together: Timing
    slowness: float
    """The p50 of an admission by that of a raw publish; the median of the rounds."""
    throughput: float
    """Admissions per second, 32 at a time, by raw publishes; the median of the rounds."""


async def compare_nats_admissions(
    address: NatsAddress, eventlog: EventLog, *, total: int
) -> ComparedAdmissions:
    """Time raw publishes and admissions in turn."""
    session_ids = await create_sessions(eventlog, SESSIONS)
    numbers = count()

    async def admit(number: int) -> None:
        body = _body(number) | {"sessionID": session_ids[next(numbers) % SESSIONS]}
        await send_command(eventlog, "session.prompt", body)

    async with bench_stream(address) as link:
        raw, alone = await time_in_turn(partial(publish, link), admit, count=total)
        session_ids[:] = await create_sessions(eventlog, SESSIONS)
        raw_together, together = await time_in_turn(
            partial(publish, link), admit, count=max(total * 4, TOGETHER_MIN), ways=WAYS
        )
    return ComparedAdmissions(
        raw=merge_rounds(raw),
        raw_together=merge_rounds(raw_together),
        alone=merge_rounds(alone),
        together=merge_rounds(together),
        slowness=median(ours.p50_ms / bare.p50_ms for ours, bare in zip(alone, raw, strict=True)),
        throughput=median(
            ours.per_s / bare.per_s for ours, bare in zip(together, raw_together, strict=True)
        ),
    )


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
