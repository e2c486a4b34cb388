"""The end of a wake whose drain has rested: tell the parent, acknowledge, look at the log once more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import Job
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.subagents import notify_parent
from fairlead_runner.titles import Titles
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_session.execution.rest import rest_rule
from fairlead_session.fold.snapshot import is_snapshot_due
from fairlead_session.next_move import is_moving

# The pauses before a wake is sent again that the queue refuses: about a second together.
WAKE_AGAIN_S: Final = (0.05, 0.1, 0.2, 0.4, 0.4)


async def end_wake(
    context: RunnerContext, job: Job, writer: StagedWriter, newer: asyncio.Event, titles: Titles
) -> None:
    """Tell the parent, acknowledge the wake, read to the leader's end, and wake if there is work.

    A prompt that came during the drain had its own wake refused, because there is at most one wake
    per session. `newer` is set when this runner has the session's next wake.
    """
    with suppress(LogError, RecordError):  # A hint: the sweep finds a parent that nobody told.
        await notify_parent(context, writer.at, writer.durable)
    needs_title = await titles.arm(writer.at, writer.durable)
    async with _snapshot_beside(context, writer):
        await job.ack()
        before = writer.versioned.head
        await writer.reload_confirmed()
        changed = writer.versioned.head != before
        execution = writer.durable.execution
        # What came during the cleanup of an interrupt is in the log already.
        rule = rest_rule(execution.rested)
        work = (changed or rule.ends_interrupt) and is_moving(writer.durable)
        if execution.owner is None and (work or rule.wakes_at_once):
            await _wake_again(context, writer.at, writer.versioned.head.position, newer)
    if needs_title:
        titles.start(writer.at)


async def _wake_again(
    context: RunnerContext, at: Address, position: int, newer: asyncio.Event
) -> None:
    """Leave a wake behind the acknowledged one, unless this runner has the next one already.

    A replicated queue removes the acknowledged one a moment later, and refuses others until then.
    """
    for pause_s in (0.0, *WAKE_AGAIN_S):
        if pause_s:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await newer.wait()
        if newer.is_set() or await context.eventlog.wakes.wake(at, position=position):
            return


@asynccontextmanager
async def _snapshot_beside(context: RunnerContext, writer: StagedWriter) -> AsyncIterator[None]:
    """Store a snapshot during the block, if one is due. Nothing in the block depends on it."""
    every, rested = context.settings.config.runner.snapshot_events, writer.versioned
    if not is_snapshot_due(opened=writer.opened_seq, seq=rested.state.seq, every=every):
        yield
        return
    storing = asyncio.create_task(context.sessions.save_snapshot(writer.at, rested))
    try:
        yield
    finally:
        with suppress(LogError):
            await storing
