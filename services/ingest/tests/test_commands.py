"""Commands to a session that exists: at most one event each, and a wake where one is needed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.execution.budget import budget
from fairlead_ingest.verbs.execution.compact import compact
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.input.cancel import cancel
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.agent import agent
from fairlead_ingest.verbs.profile.archive import archive, unarchive
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.describe import describe
from fairlead_ingest.verbs.profile.get import get
from fairlead_ingest.verbs.profile.model import model
from fairlead_ingest.verbs.profile.move import move
from fairlead_schema.commands.input import CancelInput, EditPendingInput
from fairlead_schema.commands.session import (
    DescribeSession,
    MoveSession,
    SessionCommand,
    SetBudget,
    SwitchAgent,
    SwitchModel,
)
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    ProviderNotFound,
    SessionNotFound,
)
from fairlead_schema.events import (
    AgentSwitched,
    BudgetSet,
    CompactionRequested,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    ModelSwitched,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    SessionArchived,
    SessionDescribed,
    SessionMoved,
    SessionUnarchived,
)
from fairlead_schema.model import InputModel
from fairlead_schema.prompt import Prompt
from services.ingest.tests.conftest import (
    append_events,
    create_session,
    events,
    prompt_command,
    wakes,
)

SESSION = {"sessionID": "ses_1"}
COMMAND = SessionCommand.model_validate(SESSION)
SLOW = {"model": {"providerID": "acme", "id": "slow"}}
CLAIMED = ExecutionClaimed(generation=1, runner="run_a")
PROMOTED = PromptPromoted(message_id="msg_0", prompt=Prompt(text="hi"), created=1)

VERBS: list[tuple[Callable[[CommandContext, str, Any], Awaitable[object]], InputModel]] = [
    (cancel, CancelInput.model_validate({**SESSION, "messageID": "msg_1"})),
    (edit, EditPendingInput.model_validate({**SESSION, "messageID": "msg_1", "delivery": "steer"})),
    (interrupt, COMMAND),
    (resume, COMMAND),
    (compact, COMMAND),
    (archive, COMMAND),
    (unarchive, COMMAND),
    (delete, COMMAND),
    (pending, COMMAND),
    (get, COMMAND),
    (agent, SwitchAgent.model_validate({**SESSION, "agent": "nobody"})),
    (model, SwitchModel.model_validate({**SESSION, "model": {"providerID": "none", "id": "x"}})),
    (move, MoveSession.model_validate({**SESSION, "location": {"directory": "/there"}})),
    (describe, DescribeSession.model_validate({**SESSION, "title": "Mine"})),
    (budget, SetBudget.model_validate({**SESSION, "cost": 1})),
]


def switch_agent(name: str = "plan") -> SwitchAgent:
    return SwitchAgent.model_validate({**SESSION, "agent": name})


def switch_model(**fields: object) -> SwitchModel:
    return SwitchModel.model_validate({**SESSION, **SLOW, **fields})


def move_session(directory: str) -> MoveSession:
    return MoveSession.model_validate({**SESSION, "location": {"directory": directory}})


def set_budget(**fields: float) -> SetBudget:
    return SetBudget.model_validate({**SESSION, **fields})


async def types_after_creation(eventlog: EventLog) -> list[type]:
    """The types of the events after the creation."""
    return [type(event) for event in (await events(eventlog))[1:]]


@pytest.mark.parametrize(("verb", "command"), VERBS)
@pytest.mark.parametrize("purged", [False, True], ids=["never made", "purged"])
async def test_no_verb_touches_a_session_that_does_not_exist(
    context: CommandContext,
    eventlog: EventLog,
    verb: Callable[[CommandContext, str, InputModel], Awaitable[object]],
    command: InputModel,
    *,
    purged: bool,
) -> None:
    """I-06, C-11, C-23: the check comes first: not found, no event, no wake."""
    if purged:
        await create_session(context)
        await delete(context, "default", COMMAND)
    before = await events(eventlog)

    with pytest.raises(SessionNotFound):
        await verb(context, "default", command)

    assert await events(eventlog) == before
    assert wakes(eventlog) == []


async def test_an_agent_switch_is_written_every_time(
    context: CommandContext, eventlog: EventLog
) -> None:
    """I-04, I-05: a switch to the same agent is written too; an unknown agent is refused."""
    await create_session(context)

    for _ in range(2):
        await agent(context, "default", switch_agent())
    with pytest.raises(InvalidRequest, match="nobody"):
        await agent(context, "default", switch_agent("nobody"))

    assert await types_after_creation(eventlog) == [AgentSwitched, AgentSwitched]
    assert (await get(context, "default", COMMAND)).agent == "plan"
    assert wakes(eventlog) == []


async def test_a_model_switch_is_written_when_it_changes_something(
    context: CommandContext, eventlog: EventLog
) -> None:
    """I-04, I-05, I-06: naming the default variant does not change the model."""
    await create_session(context)
    default_variant = {"model": {**SLOW["model"], "variant": "default"}}

    for command in (switch_model(), switch_model(), switch_model(**default_variant)):
        answer = await model(context, "default", command)
        assert (answer.session_id, answer.seq) == ("ses_1", 2)
    with pytest.raises(ProviderNotFound):
        await model(context, "default", switch_model(model={"providerID": "none", "id": "x"}))

    assert await types_after_creation(eventlog) == [ModelSwitched]


async def test_a_move_is_written_once(context: CommandContext, eventlog: EventLog) -> None:
    """N-16: a move to the same directory writes no event."""
    await create_session(context)

    for _ in range(2):
        await move(context, "default", move_session("/there"))
    await context.waker.shutdown()

    assert await types_after_creation(eventlog) == [SessionMoved]
    assert (await get(context, "default", COMMAND)).location.directory == "/there"
    assert wakes(eventlog) == []


async def test_a_session_is_archived_once(context: CommandContext, eventlog: EventLog) -> None:
    await create_session(context)

    for _ in range(2):
        await archive(context, "default", COMMAND)

    assert await types_after_creation(eventlog) == [SessionArchived]
    assert (await get(context, "default", COMMAND)).time.archived is not None


async def test_archiving_interrupts_a_running_turn(
    context: CommandContext, eventlog: EventLog
) -> None:
    """D16: in one commit with the archiving, and somebody makes sure that it stops."""
    await create_session(context)
    await append_events(eventlog, CLAIMED)

    await archive(context, "default", COMMAND)
    await context.waker.shutdown()

    assert await types_after_creation(eventlog) == [
        ExecutionClaimed,
        InterruptRequested,
        SessionArchived,
    ]


async def test_an_archived_session_refuses_work_and_keeps_its_receipts(
    context: CommandContext, eventlog: EventLog
) -> None:
    """D16: nothing new is written; an exact retry gets its receipt; unarchived it goes on."""
    await create_session(context)
    hello = prompt_command(id="msg_1", resume=False)
    receipt = await prompt(context, "default", hello)
    await archive(context, "default", COMMAND)
    written = await types_after_creation(eventlog)

    for refused in (
        resume(context, "default", COMMAND),
        compact(context, "default", COMMAND),
        prompt(context, "default", prompt_command()),
    ):
        with pytest.raises(Conflict, match="archived"):
            await refused
    assert await prompt(context, "default", prompt_command(id="msg_1")) == receipt
    assert await types_after_creation(eventlog) == written

    await eventlog.status.finalise(SessionUnarchived.level)
    for _ in range(2):
        await unarchive(context, "default", COMMAND)
    await prompt(context, "default", prompt_command())
    assert await types_after_creation(eventlog) == [*written, SessionUnarchived, PromptAdmitted]
    assert (await get(context, "default", COMMAND)).time.archived is None


def description(**fields: object) -> DescribeSession:
    return DescribeSession.model_validate({**SESSION, **fields})


async def test_a_session_is_described_once(context: CommandContext, eventlog: EventLog) -> None:
    """An exact repeat writes nothing and gets the same answer."""
    await create_session(context)
    await eventlog.status.finalise(SessionDescribed.level)
    command = description(title=" Mine ", metadata={"ticket": 7, "gone": None})

    first = await describe(context, "default", command)

    assert await describe(context, "default", command) == first
    assert (first.session.title, first.session.metadata) == ("Mine", {"ticket": 7})
    assert await types_after_creation(eventlog) == [SessionDescribed]
    crowd = {f"key {number}": "" for number in range(50)}
    with pytest.raises(InvalidRequest, match="51 keys"):
        await describe(context, "default", description(metadata=crowd))
    await archive(context, "default", COMMAND)
    with pytest.raises(Conflict, match="archived"):
        await describe(context, "default", command)


async def test_nobody_describes_before_the_upgrade_is_finalised(context: CommandContext) -> None:
    """A13: an older release cannot read the event."""
    await create_session(context)

    with pytest.raises(Conflict, match="finalise"):
        await describe(context, "default", description(title="Mine"))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "  "},
        {"title": "two\nlines"},
        {"title": "\x1b[31mred"},
        {"title": "nul\0"},
        {"title": "x" * 257},
        {"title": None},
        {"metadata": {"": 1}},
        {"metadata": {"a": True}},
        {"metadata": {"a": ["list"]}},
        {"metadata": {"a": "x" * 513}},
        {"metadata": {"a": 2**53}},
        {"metadata": {"k" * 65: 1}},
        {"metadata": {f"key {number}": 1 for number in range(51)}},
    ],
    ids=str,
)
def test_a_description_is_bounded(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        description(**fields)


async def test_nobody_unarchives_before_the_upgrade_is_finalised(
    context: CommandContext,
) -> None:
    """A13: an older release cannot read the event."""
    await create_session(context)
    await archive(context, "default", COMMAND)

    with pytest.raises(Conflict, match="finalise"):
        await unarchive(context, "default", COMMAND)


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ({"data": {"isDirectory": False}}, True),
        ({"data": {"isDirectory": True}}, False),
        ({"data": {"observations": []}}, False),
        ({"error": {"_tag": "UnknownError", "message": "broken"}}, False),
        (None, False),
    ],
)
async def test_a_move_to_a_directory_that_is_not_there_is_refused(
    context: CommandContext, eventlog: EventLog, answer: dict[str, Any] | None, *, refused: bool
) -> None:
    """D17: the tools service knows. Without its answer the move is accepted."""
    await create_session(context)
    if answer is not None:
        requests = eventlog.requests
        assert isinstance(requests, MemoryRequests)

        async def look(body: bytes) -> bytes:
            question = json.loads(body)
            assert (question["location"]["directory"], question["withDirectory"]) == ("/no", True)
            return json.dumps(answer).encode()

        requests.answerers["fairlead.observe.default"] = look

    if refused:
        with pytest.raises(InvalidRequest, match="no directory /no") as refusal:
            await move(context, "default", move_session("/no"))
        assert refusal.value.body.field == "location.directory"
    else:
        await move(context, "default", move_session("/no"))

    moved = [] if refused else [SessionMoved]
    assert await types_after_creation(eventlog) == moved


async def test_a_session_shows_its_effective_agent_and_model(context: CommandContext) -> None:
    """D17: the defaults, if nobody has chosen."""
    await create_session(context)

    told = await get(context, "default", COMMAND)

    assert told.model is not None
    assert (told.agent, told.model.id, told.model.variant) == ("build", "fast", "default")


async def test_resume_is_written_and_woken(context: CommandContext, eventlog: EventLog) -> None:
    """C-23: resume wakes an idle session; a second resume writes no event."""
    await create_session(context)

    for _ in range(2):
        await resume(context, "default", COMMAND)
    await context.waker.shutdown()

    assert await types_after_creation(eventlog) == [ResumeRequested]
    assert len(wakes(eventlog)) == 1


async def test_a_compaction_is_recorded_and_woken(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-25: a second request writes no event while the first is open."""
    await create_session(context)

    for _ in range(2):
        await compact(context, "default", COMMAND)
    await context.waker.shutdown()

    assert await types_after_creation(eventlog) == [CompactionRequested]
    assert len(wakes(eventlog)) == 1


async def test_a_raised_budget_wakes_a_session_that_rested_over_it(
    context: CommandContext, eventlog: EventLog
) -> None:
    """Setting or lowering a limit wakes nobody."""
    await create_session(context)
    await budget(context, "default", set_budget(cost=1))
    over = ExecutionReleased(generation=1, reason="over-budget")
    await append_events(eventlog, CLAIMED, PROMOTED, over)

    await budget(context, "default", set_budget(cost=0.5))
    await context.waker.shutdown()
    assert wakes(eventlog) == []

    await budget(context, "default", set_budget(cost=2, tokens=5000))
    await context.waker.shutdown()
    assert len(wakes(eventlog)) == 1
    sets = [event for event in await events(eventlog) if isinstance(event, BudgetSet)]
    assert sets[-1] == BudgetSet(cost=2, tokens=5000)


async def test_commands_are_decided_again_when_a_runner_writes_first(
    context: CommandContext, eventlog: EventLog
) -> None:
    """C-02: every command is written once while a runner writes too."""
    await create_session(context)

    async def drain_repeatedly() -> None:
        for generation in range(1, 9):
            with suppress(AppendConflict):
                await append_events(
                    eventlog,
                    ExecutionClaimed(generation=generation, runner="run_a"),
                    ExecutionReleased(generation=generation, reason="idle"),
                )

    await asyncio.gather(
        drain_repeatedly(),
        agent(context, "default", switch_agent()),
        model(context, "default", switch_model()),
        move(context, "default", move_session("/there")),
        budget(context, "default", set_budget(cost=1)),
        archive(context, "default", COMMAND),
    )

    kinds = await types_after_creation(eventlog)
    for kind in (AgentSwitched, ModelSwitched, SessionMoved, BudgetSet, SessionArchived):
        assert kinds.count(kind) == 1
