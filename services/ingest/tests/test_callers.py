"""Callers of commands: what a restricted principal may ask for, and what the audit says."""

import logging
from collections.abc import Awaitable, Callable

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.execution.budget import budget
from fairlead_ingest.verbs.execution.compact import compact
from fairlead_ingest.verbs.execution.interrupt import interrupt
from fairlead_ingest.verbs.execution.resume import resume
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.people import permission
from fairlead_ingest.verbs.profile.agent import agent
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.profile.delete import delete
from fairlead_ingest.verbs.profile.model import model
from fairlead_ingest.verbs.profile.move import move
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.asks import ReplyPermission
from fairlead_schema.commands.input import EditPendingInput
from fairlead_schema.commands.session import (
    MoveSession,
    SessionCommand,
    SetBudget,
    SwitchAgent,
    SwitchModel,
)
from fairlead_schema.errors import Forbidden
from fairlead_schema.events import BudgetSet, PermissionAsked, PermissionReplied
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.location import LocationRef, project_id
from fairlead_schema.permission import PermissionRequest
from fairlead_schema.subjects import BY_HEADER, RESTRICTIONS_HEADER
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import (
    AT,
    append_events,
    create_command,
    create_session,
    events,
    prompt_command,
)

PROJECT = project_id("/work")
SUBJECT = "fairlead.api.default.session.create"
ASKED = PermissionAsked(
    request=PermissionRequest(
        id="per_1", session_id="ses_1", action="bash", resources=("ls",), save=("ls",)
    ),
    agent="build",
)
REPLY = ReplyPermission(session_id="ses_1", request_id="per_1", reply="once")


def headers(**restrictions: object) -> dict[str, str]:
    limits = Restrictions.model_validate(restrictions)
    return {BY_HEADER: "key:ci", RESTRICTIONS_HEADER: limits.model_dump_json(exclude_none=True)}


@pytest.mark.parametrize(
    ("restrictions", "fields"),
    [
        ({"roots": ["/work"]}, {"location": {"directory": "/etc"}}),
        ({"roots": ["/work"]}, {"location": {"directory": "/work/../etc"}}),
        ({"roots": ["/work"]}, {"location": {"directory": "/workshop"}}),
        ({"roots": []}, {"location": {"directory": "/work"}}),
        ({"agents": ["plan"]}, {"agent": "build"}),
        ({"agents": ["plan"]}, {}),
        ({"cost": 1.0}, {"budget": {"cost": 1.5}}),
    ],
)
async def test_a_restricted_principal_creates_only_what_it_may(
    context: CommandContext,
    eventlog: EventLog,
    restrictions: dict[str, object],
    fields: dict[str, object],
) -> None:
    with (
        caller_of(SUBJECT, headers(**restrictions)),
        pytest.raises(Forbidden, match="This token may"),
    ):
        await create(context, "default", create_command(id="ses_1", **fields))

    assert await events(eventlog) == []


async def test_the_budget_of_a_principal_is_the_budget_of_its_sessions(
    context: CommandContext, eventlog: EventLog
) -> None:
    with caller_of(SUBJECT, headers(cost=2.0, agents=["plan"], roots=["/work"])):
        await create(
            context,
            "default",
            create_command(id="ses_1", agent="plan", location={"directory": "/work/a"}),
        )
        await budget(context, "default", SetBudget(session_id="ses_1", tokens=10))
        with pytest.raises(Forbidden, match="at most 2 USD"):
            await budget(context, "default", SetBudget(session_id="ses_1", cost=3))

    costs = [event.cost for event in await events(eventlog) if isinstance(event, BudgetSet)]
    assert costs == [2.0, 2.0]


async def test_a_restricted_principal_cannot_switch_or_move_outside(
    context: CommandContext,
) -> None:
    await create_session(context)

    with caller_of(SUBJECT, headers(roots=["/work"], agents=["build"])):
        with pytest.raises(Forbidden, match="agents build"):
            await agent(context, "default", SwitchAgent(session_id="ses_1", agent="plan"))
        outside = MoveSession(session_id="ses_1", location=LocationRef(directory="/etc"))
        with pytest.raises(Forbidden, match="inside /work"):
            await move(context, "default", outside)


@pytest.mark.parametrize(
    ("restrictions", "reason"),
    [
        ({"agents": ["plan"]}, "agents plan"),
        ({"roots": ["/elsewhere"]}, "inside /elsewhere"),
        ({"cost": 1.0}, "at most 1 USD"),
    ],
)
async def test_a_restricted_principal_cannot_work_through_the_session_of_a_colleague(
    context: CommandContext,
    eventlog: EventLog,
    restrictions: dict[str, object],
    reason: str,
) -> None:
    """The session has an agent, a location and a budget that the caller could not choose."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await append_events(eventlog, ASKED)
    before = await events(eventlog)
    session = SessionCommand(session_id="ses_1")
    model_ref = ModelRef(provider_id="acme", id="slow")
    commands: list[Callable[[], Awaitable[object]]] = [
        lambda: prompt(context, "default", prompt_command()),
        lambda: edit(context, "default", EditPendingInput.model_validate(
            {"sessionID": "ses_1", "messageID": "msg_1", "prompt": {"text": "mine"}}
        )),
        lambda: resume(context, "default", session),
        lambda: compact(context, "default", session),
        lambda: model(context, "default", SwitchModel(session_id="ses_1", model=model_ref)),
        lambda: permission.reply(context, "default", REPLY),
        lambda: permission.reply(
            context, "default", REPLY.model_copy(update={"reply": "always"})
        ),
    ]  # fmt: skip

    with caller_of(SUBJECT, headers(**restrictions)):
        for command in commands:
            with pytest.raises(Forbidden, match=reason):
                await command()

    assert await events(eventlog) == before
    assert await eventlog.approvals.get_all("default", PROJECT) == ()


async def test_a_restricted_principal_works_in_a_session_that_fits(
    context: CommandContext, eventlog: EventLog
) -> None:
    with caller_of(SUBJECT, headers(cost=2.0, agents=["plan"], roots=["/work"])):
        await create(context, "default", create_command(id="ses_1", agent="plan"))
        await prompt(context, "default", prompt_command())
        await interrupt(context, "default", SessionCommand(session_id="ses_1"))

    assert "prompt.admitted" in [event.type for event in await events(eventlog)]


async def test_every_approval_has_a_principal(context: CommandContext, eventlog: EventLog) -> None:
    await create_session(context)
    await append_events(eventlog, ASKED)
    with caller_of(SUBJECT, {BY_HEADER: "user:https://id.example/ada"}):
        await permission.reply(context, "default", REPLY)
    await append_events(eventlog, ASKED.model_copy(
        update={"request": ASKED.request.model_copy(update={"id": "per_2"})}
    ))  # fmt: skip
    await permission.reply(context, "default", REPLY.model_copy(update={"request_id": "per_2"}))

    page = await eventlog.log.read(AT, after=(await eventlog.log.locate(AT, 0)))
    callers = [
        stored.commit.by
        for stored in page.commits
        if any(isinstance(item.event, PermissionReplied) for item in stored.commit.events)
    ]
    assert callers == ["user:https://id.example/ada", "service:platform"]


async def test_approvals_and_purges_are_audited(
    context: CommandContext, eventlog: EventLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.audit")
    await create_session(context)
    await append_events(eventlog, ASKED)

    with caller_of(SUBJECT, {BY_HEADER: "key:ci"}):
        await permission.reply(context, "default", REPLY)
        await delete(context, "default", SessionCommand(session_id="ses_1"))

    lines = [vars(record) for record in caplog.records if record.name == "fairlead.audit"]
    assert [(line["action"], line["resource"], line["principal"]) for line in lines] == [
        ("permission.reply", "ses_1/per_1", "key:ci"),
        ("session.purge", "ses_1", "key:ci"),
    ]
    assert (lines[0]["reason"], lines[0]["tenant"]) == ("once", "default")
