"""Wakes follow the append, are retried while refused, and none is lost between two prompts."""

import asyncio
from dataclasses import replace

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.replicas.positions import parse_carried_commit
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import WakeTimings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.events import ExecutionClaimed, ExecutionReleased, InputCancelled
from fairlead_schema.record import decode
from fairlead_schema.subjects import Address, wake
from services.ingest.tests.conftest import (
    AT,
    WAIT_S,
    append_events,
    create_session,
    prompt_command,
    settings,
    wait_until,
    wakes,
)

QUICK = WakeTimings(retry_s=0.001, retry_s_max=0.001)
SLOW = WakeTimings(retry_s=60.0, shutdown_s=60.0)


@pytest.fixture
def context(eventlog: EventLog) -> CommandContext:
    return CommandContext(eventlog, settings(QUICK))


async def finish_wakes(context: CommandContext) -> None:
    async with asyncio.timeout(WAIT_S):
        await context.waker.shutdown()


class HeldWakes(MemoryWakes):
    """A wake server whose answers a test can delay."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.requests = 0

    @override
    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        self.requests += 1
        is_new = await super().wake(at, position=position, commit=commit)
        await self.answers.wait()
        return is_new


class DownWakes(MemoryWakes):
    """A wake server that fails the first calls."""

    failures = 3

    @override
    async def wake(
        self, at: Address, *, position: int | None = None, commit: CommitHint | None = None
    ) -> bool:
        self.failures -= 1
        if self.failures >= 0:
            raise LogUnavailable("down")
        return await super().wake(at, position=position, commit=commit)


async def test_a_departure_does_not_wait_for_a_server_that_is_away(
    eventlog: EventLog,
) -> None:
    """The admitted input is in the log, where the sweep finds it."""
    timings = replace(QUICK, shutdown_s=0.01)
    context = CommandContext(replace(eventlog, wakes=HeldWakes()), settings(timings))
    await create_session(context)
    await prompt(context, "default", prompt_command())

    await finish_wakes(context)

    assert (await eventlog.log.head(AT)).seq == 2


async def test_an_admission_is_followed_by_one_wake(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-23: the wake is advisory and names the session."""
    await create_session(context)

    await prompt(context, "default", prompt_command())
    await finish_wakes(context)

    assert [job.subject for job in wakes(eventlog)] == [wake(AT)]


async def test_an_exact_retry_wakes_again(context: CommandContext, eventlog: EventLog) -> None:
    """A-21: a client that lost the response can wake the session again."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))

    await prompt(context, "default", prompt_command(id="msg_1"))
    await finish_wakes(context)

    assert len(wakes(eventlog)) == 1


async def test_resume_false_wakes_nobody(context: CommandContext, eventlog: EventLog) -> None:
    """A-22: neither the first request nor its retry wakes the session."""
    await create_session(context)

    for _ in range(2):
        await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await finish_wakes(context)

    assert wakes(eventlog) == []


async def test_the_wake_comes_after_the_append(context: CommandContext, eventlog: EventLog) -> None:
    """A-26: the runner that gets the wake finds the input in the log."""
    await create_session(context)
    assert await context.eventlog.log.head(AT)

    await prompt(context, "default", prompt_command())

    assert (await eventlog.log.head(AT)).seq == 2
    await finish_wakes(context)
    assert len(wakes(eventlog)) == 1


async def test_a_refused_wake_is_tried_until_it_is_taken(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-26, C-05: the older wake may be in service already, so a new one follows it."""
    await create_session(context)
    await eventlog.wakes.wake(AT)
    (older,) = wakes(eventlog)

    await prompt(context, "default", prompt_command())
    await wait_until(lambda: older in wakes(eventlog))
    await older.ack()
    await finish_wakes(context)

    (newer,) = wakes(eventlog)
    assert newer is not older


async def test_a_refused_wake_is_dropped_once_the_session_has_moved(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-26: the older wake was enough when the work is done."""
    await create_session(context)
    await eventlog.wakes.wake(AT)
    receipt = await prompt(context, "default", prompt_command())

    await append_events(
        eventlog,
        ExecutionClaimed(generation=1, runner="run_a"),
        InputCancelled(message_id=receipt.id),
        ExecutionReleased(generation=1, reason="idle"),
    )
    await finish_wakes(context)

    assert len(wakes(eventlog)) == 1


async def test_a_refused_wake_is_dropped_once_the_session_has_an_owner(eventlog: EventLog) -> None:
    """A-26, C-05: nobody rests a session without having read the prompt. No message finds this out."""
    wakes_server = HeldWakes()
    wakes_server.answers.set()
    context = CommandContext(replace(eventlog, wakes=wakes_server), settings(SLOW))
    await create_session(context)
    await wakes_server.wake(AT)
    await append_events(eventlog, ExecutionClaimed(generation=1, runner="run_a"))

    await prompt(context, "default", prompt_command())
    await finish_wakes(context)

    assert wakes_server.requests == 2, "its own, and one that was refused"


async def test_an_owner_that_rested_before_the_prompt_does_not_count(eventlog: EventLog) -> None:
    """A-26: the wake that was refused may be acknowledged already."""
    wakes_server = HeldWakes()
    wakes_server.answers.set()
    context = CommandContext(replace(eventlog, wakes=wakes_server), settings(QUICK))
    await create_session(context)
    await wakes_server.wake(AT)
    (older,) = wakes_server.queue.messages
    await append_events(eventlog, ExecutionClaimed(generation=1, runner="run_a"))
    await append_events(eventlog, ExecutionReleased(generation=1, reason="idle"))

    await prompt(context, "default", prompt_command())
    await wait_until(lambda: wakes_server.requests > 3)
    await older.ack()
    await finish_wakes(context)

    (newer,) = wakes_server.queue.messages
    assert newer is not older


async def test_a_wake_carries_the_commit_that_it_is_about(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-23: a runner that has all before it need not read."""
    await create_session(context)
    before = await eventlog.log.head(AT)

    await prompt(context, "default", prompt_command())
    await finish_wakes(context)

    (sent,) = wakes(eventlog)
    carried, (commit,) = (
        parse_carried_commit(sent.payload),
        (await eventlog.log.read(AT, after=before)).commits,
    )
    assert carried is not None
    assert (carried.position, carried.previous) == (commit.position, before.position)
    assert decode(carried.payload) == commit.commit


async def test_a_prompt_during_a_wake_under_way_gets_a_wake_of_its_own(eventlog: EventLog) -> None:
    """A-26: the wake under way may be served before the second prompt is written."""
    wakes_server = HeldWakes()
    context = CommandContext(replace(eventlog, wakes=wakes_server), settings(QUICK))
    await create_session(context)
    await prompt(context, "default", prompt_command())
    await wait_until(lambda: len(wakes_server.queue.messages) == 1)
    await wakes_server.queue.messages[0].ack()

    await prompt(context, "default", prompt_command())
    wakes_server.answers.set()
    await finish_wakes(context)

    assert len(wakes_server.queue.messages) == 1


async def test_a_burst_of_prompts_shares_its_wakes(eventlog: EventLog) -> None:
    """C-05: all prompts during a wake share one further wake."""
    wakes_server = HeldWakes()
    context = CommandContext(
        replace(eventlog, wakes=wakes_server), settings(QUICK, pending_inputs_max=50)
    )
    await create_session(context)
    for _ in range(20):
        await prompt(context, "default", prompt_command())
    await wakes_server.queue.messages[0].ack()

    wakes_server.answers.set()
    await finish_wakes(context)

    assert wakes_server.requests == 2


async def test_a_server_that_is_away_gets_its_wake_later(eventlog: EventLog) -> None:
    """A-26: the receipt does not wait for the wake, and the waker keeps trying."""
    down = DownWakes()
    context = CommandContext(replace(eventlog, wakes=down), settings(QUICK))
    await create_session(context)

    await prompt(context, "default", prompt_command())
    await finish_wakes(context)

    assert len(down.queue.messages) == 1


async def test_a_log_that_cannot_be_read_any_more_ends_the_insisting(
    context: CommandContext, eventlog: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    """H-19: the waker ends without an error of its own and logs the reason."""
    await create_session(context)
    await eventlog.wakes.wake(AT)
    assert isinstance(eventlog.log, MemoryLog)

    await prompt(context, "default", prompt_command())
    context.waker.ensure_stop(AT)
    await eventlog.log.append_raw(AT, b"?")
    under_way = [*context.waker._waking.values(), *context.waker._stopping]  # noqa: SLF001
    await finish_wakes(context)

    assert [task.exception() for task in under_way] == [None, None]
    assert "malformed commit" in str([record.__dict__ for record in caplog.records])
