"""The options of one prompt: durable, part of an exact retry, and refused if they name nothing."""

from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.commands.input import AdmitPrompt, EditPendingInput
from fairlead_schema.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    ProviderNotFound,
    ServiceUnavailable,
)
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.prompt import Receipt
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import create_session, events
from services.ingest.tests.test_callers import headers

SLOW = {"providerID": "acme", "id": "slow"}


def command(**options: object) -> AdmitPrompt:
    body = {"sessionID": "ses_1", "id": "msg_1", "prompt": {"text": "hi", **options}}
    return AdmitPrompt.model_validate(body)


@pytest.fixture
async def ready(context: CommandContext, eventlog: EventLog) -> CommandContext:
    """A session in a log whose newest level is finalised."""
    await eventlog.status.finalise(2)
    await create_session(context)
    return context


async def admit(context: CommandContext, **options: object) -> Receipt:
    return await prompt(context, "default", command(**options))


async def test_options_are_in_the_admission_and_in_its_receipt(
    ready: CommandContext, eventlog: EventLog
) -> None:
    """P-18, A-27: an exact retry gets the same receipt, and other options are a conflict."""
    options = {"system": "In French.", "agent": "plan", "model": SLOW, "tools": ["read"]}

    receipt = await admit(ready, **options)

    assert receipt.prompt.wire() == {"text": "hi", **options}
    written = await events(eventlog)
    assert isinstance(written[-1], PromptAdmitted)
    assert written[-1].prompt == receipt.prompt
    assert await admit(ready, **options) == receipt
    with pytest.raises(Conflict):
        await admit(ready, **options | {"agent": "build"})


@pytest.mark.parametrize(
    ("options", "refusal", "field"),
    [
        ({"agent": "poet"}, InvalidRequest, "agent"),
        ({"model": {"providerID": "acme", "id": "none"}}, InvalidRequest, "model"),
        ({"model": SLOW | {"variant": "no"}}, InvalidRequest, "model.variant"),
        ({"model": SLOW | {"providerID": "none"}}, ProviderNotFound, None),
        ({"system": "  "}, InvalidRequest, "prompt.system"),
        ({"schema": {"type": "array"}}, InvalidRequest, "prompt.schema"),
        (
            {"schema": {"type": "object", "$ref": "https://x.example"}},
            InvalidRequest,
            "prompt.schema",
        ),
        ({"schema": {"type": "object", "$ref": "#/properties/a"}}, InvalidRequest, "prompt.schema"),
        ({"schema": {"type": "object", "title": "x" * 70_000}}, InvalidRequest, "prompt.schema"),
    ],
)
async def test_an_option_that_names_nothing_is_refused_before_anything_is_written(
    ready: CommandContext,
    eventlog: EventLog,
    options: dict[str, Any],
    refusal: type[InvalidRequest] | type[ProviderNotFound],
    field: str | None,
) -> None:
    with pytest.raises(refusal) as refused:
        await admit(ready, **options)

    assert refused.value.body.field == field
    assert not [event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]


async def test_options_wait_until_no_older_release_runs(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A13: an older runner would answer without them."""
    await create_session(context)

    with pytest.raises(ServiceUnavailable, match="finalise"):
        await admit(context, system="x")
    await admit(context)

    await eventlog.status.finalise(2)
    with pytest.raises(Conflict):
        await admit(context, system="x")


async def test_a_restricted_principal_chooses_only_its_own_agents(ready: CommandContext) -> None:
    caller = caller_of("fairlead.api.default.session.prompt", headers(agents=["build"]))
    with caller, pytest.raises(Forbidden, match="agents build"):
        await admit(ready, agent="plan")


async def test_an_edit_changes_the_options_of_a_pending_prompt(ready: CommandContext) -> None:
    await admit(ready, agent="plan")
    change = EditPendingInput.model_validate(
        {"sessionID": "ses_1", "messageID": "msg_1", "prompt": {"text": "hi", "tools": []}}
    )

    receipt = await edit(ready, "default", change)

    assert receipt.prompt.wire() == {"text": "hi", "tools": []}
