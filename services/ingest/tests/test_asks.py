"""The answers of people: one commit each, typed refusals, and no answer counted twice."""

import asyncio
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.ports import START
from fairlead_eventlog.process_life import Nudge
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.people import approval, permission, question
from fairlead_ingest.verbs.people.expire import expire
from fairlead_ingest.verbs.profile.archive import archive
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.asks import (
    AskPermission,
    ExpireAsk,
    ListApprovals,
    PermissionCommand,
    QuestionCommand,
    RemoveApproval,
    ReplyPermission,
    ReplyQuestion,
)
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Conflict, PermissionNotFound, QuestionNotFound, SessionNotFound
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    ExecutionReleased,
    PermissionAsked,
    PermissionReplied,
    PromptPromoted,
    QuestionAsked,
    SessionEvent,
    ToolCalled,
    ToolSucceeded,
)
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    QuestionInfo,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor, TextContent
from fairlead_service.config.configuration import Config
from services.ingest.tests.conftest import (
    AT,
    CONFIG,
    append_events,
    create_session,
    events,
    wait_until,
    wakes,
)

OTHER = Address("default", "ses_2")
ASK = {"action": "vcs", "resource": "*", "effect": "ask"}
COMMAND = SessionCommand(session_id="ses_1")


def settings_that_ask(**more: Any) -> IngestSettings:  # noqa: ANN401
    return IngestSettings(Config.model_validate({**CONFIG, "permissions": [ASK], **more}))


@pytest.fixture
def context(eventlog: EventLog) -> CommandContext:
    return CommandContext(eventlog, settings_that_ask())


def permission_event(
    call: str = "c1", *, resource: str = "git push", session: str = "ses_1"
) -> PermissionAsked:
    request = PermissionRequest(
        id=f"per_{call}",
        session_id=session,
        action="vcs",
        resources=(resource,),
        save=("git *",),
        source=CallSource(message_id="msg_a", call_id=call),
    )
    return PermissionAsked(request=request, agent="build")


def call_event(call: str) -> ToolCalled:
    return ToolCalled(
        assistant_message_id="msg_a",
        call_id=call,
        tool="vcs",
        input={},
        provider=Executor(),
        agent="build",
    )


async def park_session(
    context: CommandContext,
    eventlog: EventLog,
    *more: SessionEvent,
    at: Address = AT,
    at_rest: bool = True,
) -> None:
    """A session parked on two calls, of which one asks for a permission."""
    await create_session(context, at.session_id)
    await append_events(
        eventlog,
        ExecutionClaimed(generation=1, runner="run_a"),
        PromptPromoted(message_id="msg_0", prompt=Prompt(text="hi"), created=1),
        AttemptDispatched(
            attempt_id="att_1",
            assistant_message_id="msg_a",
            agent="build",
            model=ModelRef(provider_id="acme", id="fast"),
            step=1,
        ),
        call_event("c1"),
        call_event("c2"),
        permission_event("c1", session=at.session_id),
        *more,
        *((ExecutionReleased(generation=1, reason="parked"),) if at_rest else ()),
        at=at,
    )


def reply(word: str, call: str = "c1", session: str = "ses_1", **more: str) -> ReplyPermission:
    return ReplyPermission.model_validate(
        {"sessionID": session, "requestID": f"per_{call}", "reply": word, **more}
    )


async def last_commit_types(eventlog: EventLog, at: Address = AT) -> list[str]:
    """The event types of the last commit."""
    commit = (await eventlog.log.read(at, after=START)).commits[-1]
    return [recorded.event.type for recorded in commit.commit.events]


async def test_a_permission_is_one_commit_and_a_wake(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-14, K-15: ingest writes the reply and wakes the session."""
    await park_session(context, eventlog)

    await permission.reply(context, "default", reply("once"))

    assert await last_commit_types(eventlog) == ["permission.replied"]
    await wait_until(lambda: len(wakes(eventlog)) == 1)


async def test_a_living_owner_is_told_at_once(context: CommandContext, eventlog: EventLog) -> None:
    """K-15: the owner waits for another call and dispatches the permitted one again."""
    nudges: list[Nudge] = []
    assert isinstance(eventlog.liveness, MemoryLiveness)
    await eventlog.liveness.start_answering("run_a", nudges.append)
    await park_session(context, eventlog, at_rest=False)

    await permission.reply(context, "default", reply("once"))

    assert [nudge.at for nudge in nudges] == [AT]
    assert [nudge.position for nudge in nudges] == [(await eventlog.log.head(AT)).position], (
        "the owner reads at least this far"
    )


async def test_always_saves_each_pattern_for_the_project_first(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-16, K-17, K-28: the reply and the other asks that it covers follow."""
    await park_session(context, eventlog, permission_event("c2", resource="git pull"))
    project = (await context.load(AT)).profile
    assert project is not None

    await permission.reply(context, "default", reply("always"))
    await permission.reply(context, "default", reply("always"))

    listing = ListApprovals(project_id=project.project_id)
    (saved_rule,) = (await approval.list_(context, "default", listing)).saved
    assert (saved_rule.action, saved_rule.resource) == ("vcs", "git *")
    replies = [
        reply_event
        for reply_event in await events(eventlog)
        if isinstance(reply_event, PermissionReplied)
    ]
    assert [(reply_event.request_id, reply_event.reply) for reply_event in replies] == [
        ("per_c1", "always"),
        ("per_c2", "always"),
    ]
    await approval.remove(context, "default", RemoveApproval(id=saved_rule.id))
    assert (await approval.list_(context, "default", listing)).saved == ()


async def test_always_without_patterns_is_like_once(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-18: nothing is saved."""
    await park_session(context, eventlog)
    bare = permission_event("c2")
    request = bare.request.model_copy(update={"save": None})
    await append_events(eventlog, bare.model_copy(update={"request": request}))

    await permission.reply(context, "default", reply("always", "c2"))

    assert await eventlog.approvals.revision() == 0
    assert await last_commit_types(eventlog) == ["permission.replied"]


async def test_an_approval_answers_what_waits_in_another_session(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-17: a recheck applies the session's own rules, and answers the ask once."""
    await park_session(context, eventlog)
    await park_session(context, eventlog, at=OTHER)
    command = PermissionCommand(session_id="ses_2", request_id="per_c1")
    before = await permission.recheck(context, "default", command)
    await permission.reply(context, "default", reply("always"))

    after = await permission.recheck(context, "default", command)
    again = await permission.recheck(context, "default", command)

    assert (after.seq, again.seq) == (before.seq + 1, before.seq + 1)
    assert await last_commit_types(eventlog, OTHER) == ["permission.replied"]


async def test_somebody_who_dies_after_saving_leaves_an_approval_that_answers(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-16, K-17: the caller died before its reply was written; the approval answers."""
    await park_session(context, eventlog)
    session = await context.load(AT)
    assert session.profile is not None
    await eventlog.approvals.save("default", session.profile.project_id, "vcs", ["git *"])

    command = PermissionCommand(session_id="ses_1", request_id="per_c1")
    await permission.recheck(context, "default", command)

    assert await last_commit_types(eventlog) == ["permission.replied"]


async def test_a_refusal_with_words_settles_its_call_in_the_same_commit(
    context: CommandContext, eventlog: EventLog
) -> None:
    """E-12, K-20, K-21: the other request still waits."""
    await park_session(context, eventlog, permission_event("c2"))

    await permission.reply(context, "default", reply("reject", message="not today"))

    assert await last_commit_types(eventlog) == ["permission.replied", "tool.failed"]
    assert list((await context.load(AT)).asks.permissions) == ["per_c2"]


async def test_a_decline_stops_the_session_in_the_same_commit(
    context: CommandContext, eventlog: EventLog
) -> None:
    """E-10, K-19, K-23: the same commit answers all other asks of the session."""
    await park_session(context, eventlog, permission_event("c2"))

    await permission.reply(context, "default", reply("reject", message=""))

    assert await last_commit_types(eventlog) == [
        "permission.replied",
        "permission.replied",
        "interrupt.requested",
    ]
    assert (await context.load(AT)).execution.interrupted
    await wait_until(lambda: len(wakes(eventlog)) == 1)


async def test_late_and_foreign_replies_are_refused_and_the_same_one_is_not(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-24, K-34: an ask of another session or tenant is not found."""
    await park_session(context, eventlog)
    await create_session(context, "ses_2")
    with pytest.raises(PermissionNotFound):
        await permission.reply(context, "default", reply("once", session="ses_2"))
    with pytest.raises(SessionNotFound):
        await permission.reply(context, "other", reply("once"))
    with pytest.raises(PermissionNotFound):
        await permission.reply(context, "default", reply("once", "c9"))

    first = await permission.reply(context, "default", reply("once"))
    assert await permission.reply(context, "default", reply("once")) == first
    for late in (reply("always"), reply("reject"), reply("reject", message="no")):
        with pytest.raises(PermissionNotFound):
            await permission.reply(context, "default", late)
    assert (await context.load(AT)).seq == first.seq


async def test_of_many_answers_at_once_one_counts(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-24: the log decides which answer counts, and the others get not found."""
    await park_session(context, eventlog)
    commands = [reply("once"), reply("always"), reply("reject", message="no")] * 3

    answers = await asyncio.gather(
        *(permission.reply(context, "default", command) for command in commands),
        return_exceptions=True,
    )

    replies = [event for event in await events(eventlog) if isinstance(event, PermissionReplied)]
    assert len(replies) == 1
    refusals = [answer for answer in answers if isinstance(answer, PermissionNotFound)]
    assert len(refusals) == 6
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert not [error for error in errors if error not in refusals]


async def test_what_waits_is_listed_and_read_from_the_log(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-34, K-35: the list holds the asks of this session only."""
    await park_session(context, eventlog)
    await create_session(context, "ses_2")
    command = PermissionCommand(session_id="ses_1", request_id="per_c1")

    assert (await permission.list_(context, "default", COMMAND)).requests == (
        permission_event().request,
    )
    assert await permission.get(context, "default", command) == permission_event().request
    with pytest.raises(PermissionNotFound):
        await permission.get(
            context, "default", PermissionCommand(session_id="ses_2", request_id="per_c1")
        )
    await permission.reply(context, "default", reply("once"))
    with pytest.raises(PermissionNotFound):
        await permission.get(context, "default", command)


def ask_from_outside(**more: object) -> AskPermission:
    fields = {"sessionID": "ses_1", "action": "vcs", "resources": ["ls"], **more}
    return AskPermission.model_validate(fields)


async def test_a_tool_that_runs_elsewhere_may_ask_too(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-08, K-10, K-12: the agent's rules decide; ingest writes an event only for an ask."""
    await create_session(context)
    read_answer = await permission.ask(
        context, "default", ask_from_outside(action="read", agent="explore")
    )
    edit_answer = await permission.ask(
        context, "default", ask_from_outside(agent="explore", action="edit")
    )
    assert (read_answer.effect, edit_answer.effect) == ("allow", "deny")
    assert len(await events(eventlog)) == 1

    bash_answer = await permission.ask(context, "default", ask_from_outside(id="per_mine"))

    assert (bash_answer.id, bash_answer.effect) == ("per_mine", "ask")
    assert [event.type for event in await events(eventlog)][1:] == ["permission.asked"]


async def test_an_id_that_is_taken_is_a_conflict_unless_it_is_the_same_request(
    context: CommandContext, eventlog: EventLog
) -> None:
    """K-24: a retry finds its request; a different or answered request is refused."""
    await create_session(context)
    await permission.ask(context, "default", ask_from_outside(id="per_mine"))
    await permission.ask(context, "default", ask_from_outside(id="per_mine"))
    with pytest.raises(Conflict):
        await permission.ask(context, "default", ask_from_outside(id="per_mine", resources=["rm"]))
    answer = ReplyPermission(session_id="ses_1", request_id="per_mine", reply="once")
    await permission.reply(context, "default", answer)

    with pytest.raises(Conflict):
        await permission.ask(context, "default", ask_from_outside(id="per_mine"))
    assert len(await events(eventlog)) == 3


async def test_an_unknown_agent_may_nothing(context: CommandContext) -> None:
    """K-11: an unknown agent is denied every action."""
    await create_session(context)

    answer = await permission.ask(
        context, "default", ask_from_outside(action="read", agent="ghost")
    )

    assert answer.effect == "deny"


COLOUR = QuestionInfo(question="Which colour?", header="Colour", options=())


def question_event(call: str | None = "c2") -> QuestionAsked:
    tool = ToolSource(message_id="msg_a", call_id=call) if call else None
    return QuestionAsked(
        request=QuestionRequest(id="que_1", session_id="ses_1", questions=(COLOUR,), tool=tool)
    )


def answers(*labels: str) -> ReplyQuestion:
    return ReplyQuestion(session_id="ses_1", request_id="que_1", answers=(labels,))


async def test_an_answer_settles_its_call_in_the_same_commit(
    context: CommandContext, eventlog: EventLog
) -> None:
    """L-69, N-24, N-25, N-27: no worker takes part, and the same answer again is accepted."""
    await park_session(context, eventlog, question_event())

    first = await question.reply(context, "default", answers("red", "own words"))

    assert await last_commit_types(eventlog) == ["question.replied", "tool.succeeded"]
    (settlement,) = [event for event in await events(eventlog) if isinstance(event, ToolSucceeded)]
    assert settlement.content == (TextContent(text="Which colour? → red, own words"),)
    assert await question.reply(context, "default", answers("red", "own words")) == first
    with pytest.raises(QuestionNotFound):
        await question.reply(context, "default", answers("blue"))


async def test_a_dismissal_stops_the_session(context: CommandContext, eventlog: EventLog) -> None:
    """E-13, L-70, N-24: the same commit answers the open permission, and the model sees nothing."""
    await park_session(context, eventlog, question_event())
    command = QuestionCommand(session_id="ses_1", request_id="que_1")

    first = await question.reject(context, "default", command)

    assert await last_commit_types(eventlog) == [
        "question.rejected",
        "permission.replied",
        "interrupt.requested",
    ]
    assert await question.reject(context, "default", command) == first


async def test_an_unknown_question_is_not_found(
    context: CommandContext, eventlog: EventLog
) -> None:
    """N-25, N-26: a question of another session is not found either."""
    await park_session(context, eventlog, question_event())
    await create_session(context, "ses_2")
    foreign = {"session_id": "ses_2", "request_id": "que_1"}

    with pytest.raises(QuestionNotFound):
        await question.reply(context, "default", ReplyQuestion(**foreign, answers=()))
    with pytest.raises(QuestionNotFound):
        await question.reject(context, "default", QuestionCommand(**foreign))
    assert len((await question.list_(context, "default", COMMAND)).requests) == 1


async def test_an_interrupt_answers_what_waits(context: CommandContext, eventlog: EventLog) -> None:
    """K-26, N-26: the answers are durable, in the commit of the interrupt."""
    await park_session(context, eventlog, question_event())

    await interrupt(context, "default", COMMAND)

    assert await last_commit_types(eventlog) == [
        "permission.replied",
        "question.rejected",
        "interrupt.requested",
    ]


async def test_an_archived_session_asks_nobody(context: CommandContext, eventlog: EventLog) -> None:
    """K-26: archiving answers the open asks and interrupts the session."""
    await park_session(context, eventlog)

    await archive(context, "default", COMMAND)

    assert await last_commit_types(eventlog) == [
        "permission.replied",
        "interrupt.requested",
        "session.archived",
    ]


async def test_a_deleted_session_asks_nobody(context: CommandContext, eventlog: EventLog) -> None:
    """K-26: the asks are answered first, and the last word is a commit of its own."""
    await park_session(context, eventlog)

    await delete(context, "default", COMMAND)

    types = [event.type for event in await events(eventlog)]
    assert types[-2:] == ["permission.replied", "session.purged"]
    assert await last_commit_types(eventlog) == ["session.purged"]


async def test_a_resume_is_an_answer_to_whether_to_go_on(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-01: a resume takes back the question that a crash left."""
    await create_session(context)
    await append_events(eventlog, question_event(None))

    await resume(context, "default", COMMAND)

    assert await last_commit_types(eventlog) == ["question.rejected", "resume.requested"]


async def test_an_interrupt_of_an_idle_session_takes_its_question_back(
    context: CommandContext, eventlog: EventLog
) -> None:
    """N-26: the session does nothing, and no question stays open."""
    await create_session(context)
    await append_events(eventlog, question_event(None))

    await interrupt(context, "default", COMMAND)

    assert await last_commit_types(eventlog) == ["question.rejected"]


async def test_what_waits_for_too_long_is_refused_where_that_is_configured(
    eventlog: EventLog,
) -> None:
    """K-19: asks never expire by default; ingest checks the age itself."""
    patient, strict = (
        CommandContext(eventlog, settings_that_ask()),
        CommandContext(eventlog, settings_that_ask(asks={"expire_s": 60})),
    )
    quick = CommandContext(eventlog, settings_that_ask(asks={"expire_s": 0.000001}))
    await park_session(patient, eventlog)
    before = (await patient.load(AT)).seq
    command = ExpireAsk(session_id="ses_1", request_id="per_c1")
    for context in (patient, strict):
        assert (await expire(context, "default", command)).seq == before
    await asyncio.sleep(0.002)

    await expire(quick, "default", command)

    assert await last_commit_types(eventlog) == ["permission.replied", "interrupt.requested"]
