"""Ownership: how long a take-over takes, how soon a steer is heard, what fencing costs."""

import asyncio
import signal
import time
from contextlib import suppress
from statistics import median

from fairlead_cli.bench.admissions import ask, sessions
from fairlead_cli.bench.measure import Timing, sequential, timing
from fairlead_cli.embedded.stack import Running
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.ports import START
from fairlead_schema.events import ExecutionClaimed, SyntheticAdded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config

WAIT_S = 60.0
WAKE_HEARTBEAT_S = Config().runner.wake_heartbeat_s
SLOW = "[[sim: chunks=400 delay_ms=20]] a long answer"


async def _until(eventlog: EventLog, at: Address, type_: str, *, count: int = 1) -> float:
    """When the log first holds so many events of a type, by this process's clock."""
    seen = 0
    async with asyncio.timeout(WAIT_S):
        async for stored in eventlog.log.tail(at, after=0):
            for event in stored.commit.events:
                seen += event.event.type == type_
            if seen >= count:
                return time.perf_counter()
    raise TimeoutError(type_)


async def take_overs(up: Running, eventlog: EventLog, *, trials: int) -> Timing:
    """From SIGKILL of a session's owner to the next claim; the supervisor starts it again.

    The kills are spread over a heartbeat: one just after it has the longest to wait.
    """
    taken = []
    for trial in range(trials):
        (session,) = await sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        await ask(eventlog, "session.prompt", {"sessionID": session, "prompt": {"text": SLOW}})
        await _until(eventlog, at, "step.started")
        owner = await _owner(up, eventlog, at)
        await asyncio.sleep(WAKE_HEARTBEAT_S * trial / trials)
        began = time.perf_counter()
        up.kill("runner", owner, signal.SIGKILL)
        taken.append(await _until(eventlog, at, "execution.claimed", count=2) - began)
        await ask(eventlog, "session.interrupt", {"sessionID": session})
        await up.ready()
    return timing(taken, sum(taken))


async def _owner(up: Running, eventlog: EventLog, at: Address) -> int:
    """Which runner drains the session: the one whose pause makes its owner silent."""
    page = await eventlog.log.read(at, after=START)
    runner = next(
        event.event.runner
        for stored in page.commits
        for event in stored.commit.events
        if isinstance(event.event, ExecutionClaimed)
    )
    for index in range(len(up.services["runner"])):
        up.kill("runner", index, signal.SIGSTOP)
        life = await eventlog.liveness.ping(runner, timeout_s=0.2)
        up.kill("runner", index, signal.SIGCONT)
        if life == "silent":
            return index
    return 0


async def steers(eventlog: EventLog, *, trials: int) -> Timing:
    """From a steer's receipt to its promotion, while a turn of 0.4 s streams."""
    taken = []
    for _ in range(trials):
        (session,) = await sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        body = {"sessionID": session, "prompt": {"text": "[[sim: chunks=20 delay_ms=20]] talk"}}
        await ask(eventlog, "session.prompt", body)
        await _until(eventlog, at, "step.started")
        await ask(eventlog, "session.prompt", body | {"prompt": {"text": "and this"}})
        began = time.perf_counter()
        taken.append(await _until(eventlog, at, "prompt.promoted", count=2) - began)
    return timing(taken, sum(taken))


async def fencing(eventlog: EventLog, *, count: int) -> tuple[Timing, float]:
    """Fenced appends one after another, and the median of a refused one in milliseconds."""
    at = Address(DEFAULT_TENANT, ids.session_id())
    head = START

    async def append(_number: int) -> None:
        nonlocal head
        draft = Draft(
            ids.event_id(), 1, SyntheticAdded(message_id=ids.message_id(), text="x" * 200)
        )
        stored = await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)
        head = stored.head

    kept = await sequential(append, count=count)
    refused = []
    for _ in range(50):
        began = time.perf_counter()
        draft = Draft(ids.event_id(), 1, SyntheticAdded(message_id=ids.message_id(), text="x"))
        with suppress(AppendConflict):
            await eventlog.log.append(at, ids.commit_id(), (draft,), after=START)
        refused.append(time.perf_counter() - began)
    return kept, median(refused) * 1000
