"""Times take-overs of sessions, promotions of steers, and fenced appends."""

import asyncio
import signal
import time
from contextlib import suppress
from statistics import median

from fairlead_cli.bench.admissions import create_sessions, send_command
from fairlead_cli.bench.measurement import Timing, summarise, time_sequential
from fairlead_cli.embedded.running_stack import RunningStack
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


async def _wait_for_event(eventlog: EventLog, at: Address, type_: str, *, count: int = 1) -> float:
    """Wait until the log has `count` events of the type; return `perf_counter()` at that moment."""
    matches = 0
    async with asyncio.timeout(WAIT_S):
        async for commit in eventlog.log.tail(at, after=0):
            for event in commit.commit.events:
                matches += event.event.type == type_
            if matches >= count:
                return time.perf_counter()
    raise TimeoutError(type_)


async def time_take_overs(stack: RunningStack, eventlog: EventLog, *, trials: int) -> Timing:
    """The time from SIGKILL of a session's owner to the next claim.

    The kills are spread over a heartbeat, because a death just after a heartbeat waits longest.
    """
    durations = []
    for trial in range(trials):
        (session,) = await create_sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        await send_command(
            eventlog, "session.prompt", {"sessionID": session, "prompt": {"text": SLOW}}
        )
        await _wait_for_event(eventlog, at, "step.started")
        owner = await _find_owner(stack, eventlog, at)
        await asyncio.sleep(WAKE_HEARTBEAT_S * trial / trials)
        start = time.perf_counter()
        stack.kill("runner", owner, signal.SIGKILL)
        durations.append(await _wait_for_event(eventlog, at, "execution.claimed", count=2) - start)
        await send_command(eventlog, "session.interrupt", {"sessionID": session})
        await stack.wait_ready()
    return summarise(durations, sum(durations))


async def _find_owner(stack: RunningStack, eventlog: EventLog, at: Address) -> int:
    """The index of the runner that owns the session: while it is paused, the owner is silent."""
    page = await eventlog.log.read(at, after=START)
    runner = next(
        event.event.runner
        for stored in page.commits
        for event in stored.commit.events
        if isinstance(event.event, ExecutionClaimed)
    )
    for index in range(len(stack.services["runner"])):
        stack.kill("runner", index, signal.SIGSTOP)
        liveness = await eventlog.liveness.ping(runner, timeout_s=0.2)
        stack.kill("runner", index, signal.SIGCONT)
        if liveness == "silent":
            return index
    return 0


async def time_steers(eventlog: EventLog, *, trials: int) -> Timing:
    """The time from a steer's receipt to its promotion, while a turn of 0.4 s streams."""
    durations = []
    for _ in range(trials):
        (session,) = await create_sessions(eventlog, 1)
        at = Address(DEFAULT_TENANT, session)
        body = {"sessionID": session, "prompt": {"text": "[[sim: chunks=20 delay_ms=20]] talk"}}
        await send_command(eventlog, "session.prompt", body)
        await _wait_for_event(eventlog, at, "step.started")
        await send_command(eventlog, "session.prompt", body | {"prompt": {"text": "and this"}})
        start = time.perf_counter()
        durations.append(await _wait_for_event(eventlog, at, "prompt.promoted", count=2) - start)
    return summarise(durations, sum(durations))


async def time_fenced_appends(eventlog: EventLog, *, count: int) -> tuple[Timing, float]:
    """Fenced appends one after another, and the median time of a refused append in milliseconds."""
    at = Address(DEFAULT_TENANT, ids.session_id())
    head = START

    async def append(_number: int) -> None:
        nonlocal head
        draft = Draft(
            ids.event_id(), 1, SyntheticAdded(message_id=ids.message_id(), text="x" * 200)
        )
        stored = await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)
        head = stored.head

    appends = await time_sequential(append, count=count)
    refusals = []
    for _ in range(50):
        start = time.perf_counter()
        draft = Draft(ids.event_id(), 1, SyntheticAdded(message_id=ids.message_id(), text="x"))
        with suppress(AppendConflict):
            await eventlog.log.append(at, ids.commit_id(), (draft,), after=START)
        refusals.append(time.perf_counter() - start)
    return appends, median(refusals) * 1000
