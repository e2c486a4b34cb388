"""Quotas at the door: a tenant at its limit gets a typed refusal, and nobody else is disturbed. B11."""

import json
from contextlib import AbstractContextManager

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.input.shell import shell
from fairlead_ingest.verbs.profile.create import create
from fairlead_ingest.verbs.transfer.check import check
from fairlead_schema import subjects
from fairlead_schema.commands.input import RequestShell
from fairlead_schema.commands.transfer import CheckTransfer
from fairlead_schema.errors import LimitReached, SessionNotFound
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import BY_HEADER
from fairlead_service.config.configuration import Config
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import CONFIG, create_command, prompt_command

QUOTA = {"sessions": 2, "log_bytes": 1000, "pending": 2}


def context_with_totals(eventlog: EventLog, **totals: int) -> CommandContext:
    """A context with quotas, where the projector answers with these totals."""
    config = Config.model_validate(CONFIG | {"quota": QUOTA, "tenant": {"free": {"quota": {}}}})
    assert isinstance(eventlog.requests, MemoryRequests)

    async def answer(_body: bytes) -> bytes:
        return json.dumps({"data": {"cost": 0, "tokens": 0, **totals}}).encode()

    eventlog.requests.answerers[subjects.tenant_usage("default")] = answer
    return CommandContext(eventlog, IngestSettings(config))


async def test_a_tenant_creates_as_many_sessions_as_its_quota_allows_even_in_a_burst(
    eventlog: EventLog,
) -> None:
    """B11: what this process created counts at once, before the projector knows of it."""
    context = context_with_totals(eventlog, sessions=1)
    await create(context, "default", create_command(id="ses_1"))

    with pytest.raises(LimitReached) as refused:
        await create(context, "default", create_command(id="ses_2"))

    body = refused.value.body
    assert (refused.value.status, body.kind, body.field) == (429, "Quota", "sessions")
    assert body.message == (
        "The tenant has 2 of 2 sessions: delete sessions that nobody needs,"
        " or raise `sessions` in [quota]"
    )
    # A repeated create adds no session, and another tenant has a quota of its own.
    await create(context, "default", create_command(id="ses_1"))
    await create(context, "other", create_command(id="ses_2"))


@pytest.mark.parametrize(("quota", "used"), [("logBytes", 1000), ("pending", 2)])
async def test_a_prompt_over_a_quota_is_refused_and_an_exact_retry_gets_its_receipt(
    eventlog: EventLog, quota: str, used: int
) -> None:
    """B11: accepted input stays accepted, whatever the tenant uses now."""
    roomy = context_with_totals(eventlog)
    await create(roomy, "default", create_command(id="ses_1"))
    admitted = await prompt(roomy, "default", prompt_command(id="msg_1"))
    full = context_with_totals(eventlog, **{quota: used})

    again = await prompt(full, "default", prompt_command(id="msg_1"))
    with pytest.raises(LimitReached, match="The tenant has"):
        await prompt(full, "default", prompt_command(id="msg_2"))
    with pytest.raises(SessionNotFound):
        await prompt(full, "default", prompt_command(sessionID="ses_unknown"))

    assert again == admitted


async def test_a_command_of_a_person_needs_the_same_room_as_a_prompt(eventlog: EventLog) -> None:
    """B11: the two quotas, and an exact retry gets its receipt."""
    await eventlog.log._status.finalise(LEVEL_NEWEST)  # type: ignore[attr-defined]  # noqa: SLF001
    context = context_with_totals(eventlog, pending=1)
    await create(context, "default", create_command(id="ses_1"))
    asked = RequestShell(session_id="ses_1", id="msg_1", command="ls")
    first = await shell(context, "default", asked)

    assert await shell(context, "default", asked) == first
    with pytest.raises(LimitReached, match="2 of 2 pending"):
        await shell(context, "default", asked.model_copy(update={"id": "msg_2"}))
    with pytest.raises(LimitReached, match="2 of 2 pending"):
        await prompt(context, "default", prompt_command(id="msg_3"))


PRINCIPAL_QUOTA = {"sessions": 1, "pending": 2, "log_bytes": 1000}


def limited_principals(eventlog: EventLog, **totals: int) -> CommandContext:
    """A context with quotas of principals, where `key:ann` has these totals and others nothing."""
    quota = {"principal": PRINCIPAL_QUOTA}
    assert isinstance(eventlog.requests, MemoryRequests)

    async def answer(body: bytes) -> bytes:
        principal = json.loads(body).get("principal")
        used = totals if principal == "key:ann" else {}
        return json.dumps({"data": {"principal": principal, **used}}).encode()

    eventlog.requests.answerers[subjects.tenant_usage("default")] = answer
    return CommandContext(
        eventlog, IngestSettings(Config.model_validate(CONFIG | {"quota": quota}))
    )


def acting(principal: str) -> AbstractContextManager[None]:
    return caller_of("fairlead.api.default.verb", {BY_HEADER: principal})


async def test_a_principal_at_its_quota_is_refused_and_the_others_of_its_tenant_are_not(
    eventlog: EventLog,
) -> None:
    """B11: one user cannot take all sessions of a tenant. The refusal says whose quota it is."""
    context = limited_principals(eventlog)
    with acting("key:ann"):
        await create(context, "default", create_command(id="ses_1"))
        with pytest.raises(LimitReached) as refused:
            await create(context, "default", create_command(id="ses_2"))
        await create(context, "default", create_command(id="ses_1"))
    own_subject = "fairlead.as.default.key:ann.session.create"
    with caller_of(own_subject, None), pytest.raises(LimitReached):
        await create(context, "default", create_command(id="ses_2"))
    with acting("key:bob"):
        await create(context, "default", create_command(id="ses_2"))

    body = refused.value.body
    assert (refused.value.status, body.kind, body.field) == (429, "Quota", "principal.sessions")
    assert body.message == (
        "The principal has 1 of 1 sessions: delete sessions that nobody needs,"
        " or raise `sessions` in [quota.principal]"
    )


@pytest.mark.parametrize(("quota", "used"), [("logBytes", 1000), ("pending", 2)])
async def test_a_prompt_of_a_principal_over_its_quota_is_refused(
    eventlog: EventLog, quota: str, used: int
) -> None:
    """B11: a service that acts for itself, and every other principal, may still prompt."""
    context = limited_principals(eventlog, **{quota: used})
    await create(context, "default", create_command(id="ses_1"))
    admitted = await prompt(context, "default", prompt_command(id="msg_1"))

    with acting("key:ann"):
        again = await prompt(context, "default", prompt_command(id="msg_1"))
        with pytest.raises(LimitReached, match="The principal has"):
            await prompt(context, "default", prompt_command(id="msg_2"))
    with acting("key:bob"):
        other = await prompt(context, "default", prompt_command(id="msg_2"))

    assert again == admitted
    assert other.id == "msg_2"


@pytest.mark.parametrize("caller", [None, "key:bob"])
@pytest.mark.parametrize("message_id", [None, "msg_9"])
async def test_a_prompt_is_refused_while_the_creator_of_its_session_is_over_its_quota(
    eventlog: EventLog, caller: str | None, message_id: str | None
) -> None:
    """B11: a prompt counts for the creator, so the queue of NATS and a colleague are no way around."""
    context = limited_principals(eventlog, pending=2)
    with acting("key:ann"):
        await create(context, "default", create_command(id="ses_1"))
    headers = {} if caller is None else {BY_HEADER: caller}
    fields = {} if message_id is None else {"id": message_id}

    with (
        caller_of("fairlead.api.default.verb", headers),
        pytest.raises(LimitReached) as refused,
    ):
        await prompt(context, "default", prompt_command(**fields))

    assert refused.value.body.field == "principal.pending"


async def test_what_a_colleague_prompts_counts_at_once_for_the_creator_of_the_session(
    eventlog: EventLog,
) -> None:
    """B11: a burst fills the share of the principal for which the projector counts it, and no other."""
    context = limited_principals(eventlog, pending=1)
    with acting("key:ann"):
        await create(context, "default", create_command(id="ses_1"))
    with acting("key:bob"):
        await prompt(context, "default", prompt_command(id="msg_1"))
        with pytest.raises(LimitReached, match="2 of 2 pending"):
            await prompt(context, "default", prompt_command(id="msg_2"))
        await create(context, "default", create_command(id="ses_2"))
        await prompt(context, "default", prompt_command(id="msg_3", sessionID="ses_2"))


async def test_without_a_projector_all_is_admitted(eventlog: EventLog) -> None:
    """B11: quotas fail open, because accepted work must never wait for a count."""
    context = context_with_totals(eventlog, sessions=9, pending=9)
    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers.clear()

    await create(context, "default", create_command(id="ses_1"))
    receipt = await prompt(context, "default", prompt_command(id="msg_1"))

    assert receipt.id == "msg_1"


@pytest.mark.parametrize(
    ("adds", "quota"),
    [({"sessions": 2}, "sessions"), ({"sessions": 1, "logBytes": 901}, "log_bytes")],
)
async def test_an_import_needs_room_for_all_that_it_brings(
    eventlog: EventLog, adds: dict[str, int], quota: str
) -> None:
    """B11: a file fits as a whole or not at all, and one that is here already needs no room."""
    await eventlog.status.finalise(LEVEL_NEWEST)
    context = context_with_totals(eventlog, sessions=1, logBytes=100)

    with pytest.raises(LimitReached) as refused:
        await check(context, "default", CheckTransfer.model_validate({"adds": adds}))

    assert refused.value.body.field == quota
    fitting = {"adds": {"sessions": 1, "logBytes": 900}}
    await check(context, "default", CheckTransfer.model_validate(fitting))
    full = context_with_totals(eventlog, sessions=2, logBytes=1000)
    await check(full, "default", CheckTransfer.model_validate({"adds": {"sessions": 0}}))
