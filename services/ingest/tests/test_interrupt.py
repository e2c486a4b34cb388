"""Interrupts are durable, written once, and honoured even when the owner is dead."""

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import WakeTimings
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.move import move
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.session import MoveSession, SessionCommand
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    SessionCreated,
    SessionMoved,
    ToolCalled,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.tools.content import Executor
from services.ingest.tests.conftest import (
    append_events,
    create_session,
    events,
    prompt_command,
    settings,
    wakes,
)

COMMAND = SessionCommand(session_id="ses_1")
CLAIMED = ExecutionClaimed(generation=1, runner="run_a")
STOPPED = ExecutionReleased(generation=1, reason="interrupted")
PARKED = (
    CLAIMED,
    PromptPromoted(message_id="msg_0", prompt=Prompt(text="hi"), created=1),
    AttemptDispatched(
        attempt_id="att_1",
        assistant_message_id="msg_a",
        agent="build",
        model=ModelRef(provider_id="acme", id="fast"),
        step=1,
    ),
    ToolCalled(
        assistant_message_id="msg_a",
        call_id="call_1",
        tool="bash",
        input={},
        provider=Executor(executed=False),
    ),
    ExecutionReleased(generation=1, reason="parked"),
)


@pytest.fixture
def context(eventlog: EventLog) -> CommandContext:
    return CommandContext(eventlog, settings(WakeTimings(honour_s=0.001)))


async def test_an_idle_session_is_left_alone(context: CommandContext, eventlog: EventLog) -> None:
    """C-11, C-16: without event and wake the pending input stays pending."""
    await create_session(context)
    await prompt(context, "default", prompt_command(resume=False))

    answer = await interrupt(context, "default", COMMAND)
    await context.waker.shutdown()

    assert answer.seq == 2
    assert [type(event) for event in await events(eventlog)] == [SessionCreated, PromptAdmitted]
    assert wakes(eventlog) == []


async def test_what_nobody_has_begun_is_dropped_and_an_exact_retry_asks_again(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-12, C-16, A-21: the input stays pending; an exact retry writes a resume."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1"))

    first = await interrupt(context, "default", COMMAND)
    again = await interrupt(context, "default", COMMAND)
    for _ in range(2):
        await prompt(context, "default", prompt_command(id="msg_1"))
    await context.waker.shutdown()

    assert (first.outcome, again.outcome) == ("dropped", "idle")
    new_events = (await events(eventlog))[2:]
    assert new_events == [InterruptRequested(), ResumeRequested(forced=False)]


@pytest.mark.parametrize("log", [(CLAIMED,), PARKED], ids=["owner is dead", "parked"])
async def test_an_interrupt_that_nobody_honours_brings_somebody(
    context: CommandContext, eventlog: EventLog, log: tuple[ExecutionClaimed, ...]
) -> None:
    """C-12: repeated interrupts write one event, and a wake finds a runner for it."""
    await create_session(context)
    await append_events(eventlog, *log)

    outcomes = [(await interrupt(context, "default", COMMAND)).outcome for _ in range(2)]
    await context.waker.shutdown()

    assert outcomes == ["stopping", "stopping"]
    kinds = [type(event) for event in await events(eventlog)]
    assert kinds.count(InterruptRequested) == 1
    assert len(wakes(eventlog)) == 1


async def test_an_interrupt_that_the_owner_honours_leaves_no_wake(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-12, C-16: a wake after the interrupt would promote the pending input."""
    await create_session(context)
    await prompt(context, "default", prompt_command(resume=False))
    await append_events(eventlog, CLAIMED)

    await interrupt(context, "default", COMMAND)
    await append_events(eventlog, STOPPED)
    await context.waker.shutdown()

    assert wakes(eventlog) == []


async def test_a_move_interrupts_in_the_same_commit(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-25, N-22: work at the old place stops before work at the new place starts."""
    await create_session(context)
    await append_events(eventlog, CLAIMED)

    there = {"sessionID": "ses_1", "location": {"directory": "/there"}}
    await move(context, "default", MoveSession.model_validate(there))
    await context.waker.shutdown()

    assert [type(event) for event in (await events(eventlog))[-2:]] == [
        InterruptRequested,
        SessionMoved,
    ]
    assert len(wakes(eventlog)) == 1
