"""Timers: durable, one per session, never early."""

import asyncio

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_eventlog.process_life import Nudge
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import CARRIED_BYTES_MAX
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids


async def test_a_session_is_due_at_its_last_set_time(eventlog: EventLog, at: Address) -> None:
    began = ids.now_ms()
    await eventlog.timers.wake_at(at, began + 60_000)
    await eventlog.timers.wake_at(at, began + 1_200)
    if isinstance(eventlog.timers, MemoryTimers):
        eventlog.timers.fire(at)

    async with asyncio.timeout(20):
        async for job in eventlog.timers.take_due(Slots(10)):
            if job.subject == subjects.timer_due(at):
                break
    await job.ack()

    assert isinstance(eventlog.timers, MemoryTimers) or ids.now_ms() >= began + 1_200


async def test_a_nudge_reaches_the_instance_it_is_for(eventlog: EventLog, at: Address) -> None:
    nudges: asyncio.Queue[Nudge] = asyncio.Queue()
    instance = ids.runner_id()
    await eventlog.liveness.start_answering(instance, nudges.put_nowait)

    await eventlog.liveness.nudge(ids.runner_id(), at)
    await eventlog.liveness.nudge(instance, at)
    await eventlog.liveness.nudge(instance, at, position=7)

    assert await asyncio.wait_for(nudges.get(), 10) == Nudge(at)
    assert await asyncio.wait_for(nudges.get(), 10) == Nudge(at, 7), "A1: how far to read"
    assert await eventlog.liveness.ping(instance, timeout_s=2) == "alive"
    assert nudges.empty()


async def test_a_nudge_carries_a_small_commit(eventlog: EventLog, at: Address) -> None:
    """Who has all before it need not read the log."""
    nudges: asyncio.Queue[Nudge] = asyncio.Queue()
    instance = ids.runner_id()
    await eventlog.liveness.start_answering(instance, nudges.put_nowait)
    commit = CommitHint(12, 9, '{"id": "été\nüber"}'.encode())
    too_large = commit._replace(payload=b"x" * (CARRIED_BYTES_MAX + 1))

    await eventlog.liveness.nudge(instance, at, position=12, commit=commit)
    await eventlog.liveness.nudge(instance, at, position=12, commit=too_large)

    assert await asyncio.wait_for(nudges.get(), 10) == Nudge(at, 12, commit)
    assert await asyncio.wait_for(nudges.get(), 10) == Nudge(at, 12)
