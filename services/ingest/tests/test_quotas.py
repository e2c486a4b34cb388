"""Quotas at the door: a tenant at its limit gets a typed refusal, and nobody else is disturbed. B11."""

import json

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.create import create
from fairlead_schema import subjects
from fairlead_schema.errors import LimitReached, SessionNotFound
from fairlead_service.config.configuration import Config
from services.ingest.tests.conftest import CONFIG, create_command, prompt_command

QUOTA = {"sessions": 2, "log_bytes": 1000, "pending": 2}


def limited(eventlog: EventLog, **totals: int) -> CommandContext:
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
    context = limited(eventlog, sessions=1)
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
    roomy = limited(eventlog)
    await create(roomy, "default", create_command(id="ses_1"))
    admitted = await prompt(roomy, "default", prompt_command(id="msg_1"))
    full = limited(eventlog, **{quota: used})

    again = await prompt(full, "default", prompt_command(id="msg_1"))
    with pytest.raises(LimitReached, match="The tenant has"):
        await prompt(full, "default", prompt_command(id="msg_2"))
    with pytest.raises(SessionNotFound):
        await prompt(full, "default", prompt_command(sessionID="ses_unknown"))

    assert again == admitted


async def test_without_a_projector_all_is_admitted(eventlog: EventLog) -> None:
    """B11: quotas fail open, because accepted work must never wait for a count."""
    context = limited(eventlog, sessions=9, pending=9)
    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers.clear()

    await create(context, "default", create_command(id="ses_1"))
    receipt = await prompt(context, "default", prompt_command(id="msg_1"))

    assert receipt.id == "msg_1"
