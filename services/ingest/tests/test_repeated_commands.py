"""Commands with an idempotency key: the second time decides nothing and gets the first answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.execution.compact import compact
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.agent import agent
from fairlead_ingest.verbs.profile.describe import describe
from fairlead_ingest.verbs.repeated_command import KeyedHandler, answer_once
from fairlead_ingest.verbs.revert import revert
from fairlead_schema.commands.input import EditPendingInput
from fairlead_schema.commands.session import DescribeSession, SessionCommand, SwitchAgent
from fairlead_schema.errors import Conflict, InvalidRequest, SessionNotFound
from fairlead_schema.events import (
    AgentSwitched,
    CommandAnswered,
    CompactionRequested,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptPromoted,
    ResumeRequested,
    SessionEvent,
)
from fairlead_schema.model import Model
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import BY_HEADER, KEY_HEADER
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import (
    append_events,
    create_session,
    events,
    prompt_command,
    settings,
    wakes,
)

HERE = SessionCommand(session_id="ses_1")
PLAN = SwitchAgent(session_id="ses_1", agent="plan")


@contextmanager
def key(value: str, *, by: str = "key:ada") -> Iterator[None]:
    """A request that carries an idempotency key."""
    with caller_of("fairlead.api.default.verb", {BY_HEADER: by, KEY_HEADER: value}):
        yield


def once(handler: KeyedHandler, verb: str = "verb") -> Callable[..., Awaitable[Any]]:
    return answer_once(verb, handler)


async def kinds(eventlog: EventLog) -> list[type[SessionEvent]]:
    return [type(event) for event in await events(eventlog)]


@pytest.fixture
async def session(context: CommandContext, eventlog: EventLog) -> CommandContext:
    """A session under a log whose newest level is finalised."""
    await eventlog.status.finalise(CommandAnswered.level)
    await create_session(context)
    return context


@pytest.mark.parametrize(
    ("handler", "command", "event"),
    [
        (agent, PLAN, AgentSwitched),
        (resume, HERE, ResumeRequested),
        (compact, HERE, CompactionRequested),
    ],
    ids=["agent", "resume", "compact"],
)
async def test_a_repeated_command_writes_once_and_gets_the_same_answer(
    session: CommandContext,
    eventlog: EventLog,
    handler: KeyedHandler,
    command: Model,
    event: type[SessionEvent],
) -> None:
    """Each of these verbs would write another event after the first is done."""
    with key("one"):
        first = await once(handler)(session, "default", command)
    await append_events(
        eventlog,
        ExecutionClaimed(generation=1, runner="run_1"),
        ExecutionReleased(generation=1, reason="idle"),
    )
    with key("one"):
        again = await once(handler)(session, "default", command)

    assert again == first
    assert (await kinds(eventlog)).count(event) == 1
    assert (await kinds(eventlog)).count(CommandAnswered) == 1


async def test_a_late_interrupt_stops_nothing_that_began_after_its_first_try(
    session: CommandContext, eventlog: EventLog
) -> None:
    """The reason for the keys of verbs that write nothing the first time."""
    with key("stop"):
        first = await once(interrupt)(session, "default", HERE)
    await prompt(session, "default", prompt_command())
    await append_events(eventlog, ExecutionClaimed(generation=1, runner="run_1"))
    with key("stop"):
        again = await once(interrupt)(session, "default", HERE)

    assert (first.outcome, again) == ("idle", first)
    assert InterruptRequested not in await kinds(eventlog)


async def test_another_command_under_the_same_key_is_a_conflict_and_changes_nothing(
    session: CommandContext, eventlog: EventLog
) -> None:
    with key("one"):
        await once(agent)(session, "default", PLAN)
        with pytest.raises(Conflict, match="another request"):
            await once(agent)(session, "default", PLAN.model_copy(update={"agent": "build"}))

    assert (await kinds(eventlog)).count(AgentSwitched) == 1


async def test_the_key_of_another_principal_or_verb_is_another_key(
    session: CommandContext, eventlog: EventLog
) -> None:
    for by in ("key:ada", "key:bob"):
        with key("one", by=by):
            await once(agent)(session, "default", PLAN)
    with key("one"):
        await once(agent, "other")(session, "default", PLAN)

    assert (await kinds(eventlog)).count(AgentSwitched) == 3


async def test_a_refused_command_leaves_no_key(session: CommandContext, eventlog: EventLog) -> None:
    with key("one"):
        with pytest.raises(InvalidRequest):
            await once(agent)(session, "default", PLAN.model_copy(update={"agent": "none"}))
        await once(agent)(session, "default", PLAN)

    assert (await kinds(eventlog)).count(CommandAnswered) == 1


async def test_two_callers_at_the_same_time_decide_once(
    session: CommandContext, eventlog: EventLog
) -> None:
    """Two ingests get the same command: the loser of the race reads the answer of the other."""
    contexts = [session, CommandContext(eventlog, settings())]

    async def call(context: CommandContext) -> Model:
        with key("one"):
            answer: Model = await once(agent)(context, "default", PLAN)
            return answer

    one, other = await asyncio.gather(*(call(context) for context in contexts))

    assert one == other
    assert (await kinds(eventlog)).count(AgentSwitched) == 1


async def test_a_repeated_command_wakes_again(session: CommandContext, eventlog: EventLog) -> None:
    """The first ingest may have died between its commit and its wake."""
    await prompt(session, "default", prompt_command(resume=False))
    with key("one"):
        await once(resume)(session, "default", HERE)
    await session.waker.shutdown()
    wakes(eventlog).clear()

    restarted = CommandContext(eventlog, settings())
    with key("one"):
        await once(resume)(restarted, "default", HERE)
    await restarted.waker.shutdown()

    assert len(wakes(eventlog)) == 1


async def test_a_repeated_edit_shows_the_input_although_the_model_has_it(
    session: CommandContext, eventlog: EventLog
) -> None:
    await prompt(session, "default", prompt_command(id="msg_1"))
    command = EditPendingInput.model_validate(
        {"sessionID": "ses_1", "messageID": "msg_1", "prompt": {"text": "edited"}}
    )
    with key("one"):
        first = await once(edit)(session, "default", command)
    await append_events(
        eventlog, PromptPromoted(message_id="msg_1", prompt=Prompt(text="edited"), created=1)
    )
    with key("one"):
        again = await once(edit)(session, "default", command)
        only = EditPendingInput.model_validate({**command.wire(), "delivery": "queue"})
        with pytest.raises(Conflict):
            await once(edit)(session, "default", only)

    assert again == first.model_copy(update={"promoted_seq": again.promoted_seq})


async def test_a_repeated_description_shows_the_session_as_it_is(session: CommandContext) -> None:
    command = DescribeSession(session_id="ses_1", title="One", metadata={"a": 1})
    with key("one"):
        first = await once(describe)(session, "default", command)
    await describe(session, "default", DescribeSession(session_id="ses_1", title="Two"))
    with key("one"):
        again = await once(describe)(session, "default", command)

    assert (again.seq, again.session.title) == (first.seq, "Two")


async def test_a_repeated_clear_names_no_request_if_there_was_none(session: CommandContext) -> None:
    with key("one"):
        first = await once(revert.clear)(session, "default", HERE)
        again = await once(revert.clear)(session, "default", HERE)

    assert again == first
    assert first.request is None


async def test_a_key_is_refused_until_the_log_can_remember_it(
    context: CommandContext,
) -> None:
    """A13: an older release could not read the note."""
    await create_session(context)

    with key("one"), pytest.raises(InvalidRequest, match="finalise"):
        await once(resume)(context, "default", HERE)

    assert await once(resume)(context, "default", HERE)


async def test_a_missing_session_remembers_no_key(session: CommandContext) -> None:
    with key("one"), pytest.raises(SessionNotFound):
        await once(resume)(session, "default", SessionCommand(session_id="ses_2"))


async def test_without_a_key_nothing_is_added(session: CommandContext, eventlog: EventLog) -> None:
    await once(agent)(session, "default", PLAN)

    assert CommandAnswered not in await kinds(eventlog)
