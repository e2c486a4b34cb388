"""`session.prompt`: a durable admission, once per message id, with a wake afterwards."""

import asyncio

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.create import create
from fairlead_schema import subjects
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    LimitReached,
    PayloadTooLarge,
    SessionNotFound,
)
from fairlead_schema.events import PromptAdmitted, SyntheticAdded
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import LocationConfig
from fairlead_service.rpc.caller import caller_of
from services.ingest.tests.conftest import (
    append_events,
    create_command,
    create_session,
    events,
    prompt_command,
    settings,
    wakes,
)


async def admissions(eventlog: EventLog) -> list[PromptAdmitted]:
    return [event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]


async def test_an_unknown_session_is_not_found_before_anything_is_written(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-10: this holds with and without a message id."""
    for command in (prompt_command(), prompt_command(id="msg_1")):
        with pytest.raises(SessionNotFound):
            await prompt(context, "default", command)

    assert await events(eventlog) == []
    assert await eventlog.message_ids.bind("default", "msg_1", "ses_other") == "ses_other"


async def test_admission_is_one_event_and_a_receipt(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-11, A-12: the default delivery is steer, and the transcript stays empty."""
    await create_session(context)

    receipt = await prompt(context, "default", prompt_command(id="msg_1"))

    (event,) = await admissions(eventlog)
    assert (event.message_id, event.delivery, event.resume) == ("msg_1", "steer", None)
    assert (receipt.admitted_seq, receipt.promoted_seq) == (2, None)
    session = await context.load(Address("default", "ses_1"))
    assert not session.transcript.lines


async def test_without_an_id_every_prompt_is_its_own(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-13: identical prompts are two admissions."""
    await create_session(context)

    first = await prompt(context, "default", prompt_command())
    second = await prompt(context, "default", prompt_command())

    assert first.id != second.id
    assert len(await admissions(eventlog)) == 2


async def test_an_exact_retry_gets_the_identical_receipt(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-14: no second event is written, whichever process answers."""
    await create_session(context)
    first = await prompt(context, "default", prompt_command(id="msg_1"))

    again = await prompt(context, "default", prompt_command(id="msg_1"))
    elsewhere = await prompt(
        CommandContext(eventlog, settings()), "default", prompt_command(id="msg_1")
    )

    assert first == again == elsewhere
    assert len(await admissions(eventlog)) == 1


async def test_the_id_we_minted_retries_exactly_too(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-13, A-14: a client may repeat the id that its receipt names."""
    await create_session(context)
    first = await prompt(context, "default", prompt_command())

    assert await prompt(context, "default", prompt_command(id=first.id)) == first
    assert len(await admissions(eventlog)) == 1


async def test_concurrent_exact_retries_give_one_event(eventlog: EventLog) -> None:
    """A-15: several processes give one receipt."""
    contexts = [CommandContext(eventlog, settings()) for _ in range(4)]
    await create_session(contexts[0])

    receipts = await asyncio.gather(
        *(prompt(context, "default", prompt_command(id="msg_1")) for context in contexts)
    )

    assert len({receipt.admitted_seq for receipt in receipts}) == 1
    assert len(await admissions(eventlog)) == 1


async def test_concurrent_prompts_of_one_session_are_all_admitted(eventlog: EventLog) -> None:
    """A-15: ingest decides again after a lost race."""
    contexts = [CommandContext(eventlog, settings(pending_inputs_max=100)) for _ in range(4)]
    await create_session(contexts[0])

    await asyncio.gather(
        *(prompt(context, "default", prompt_command()) for context in contexts for _ in range(3))
    )

    assert len(await admissions(eventlog)) == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "other"},
        {"delivery": "queue"},
        {"prompt": {"text": "hello", "files": [{"uri": "a.png"}]}},
    ],
    ids=["words", "delivery", "files"],
)
async def test_the_same_id_with_anything_else_is_a_conflict(
    context: CommandContext, eventlog: EventLog, changes: dict[str, str]
) -> None:
    """A-16, A-17: nothing else is stored."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1"))

    with pytest.raises(Conflict) as refusal:
        await prompt(context, "default", prompt_command(id="msg_1", **changes))

    assert refusal.value.body.resource == "msg_1"
    assert len(await admissions(eventlog)) == 1


@pytest.mark.parametrize("minted_by_ingest", [False, True], ids=["callers", "ours"])
async def test_a_message_id_belongs_to_one_session(
    context: CommandContext, eventlog: EventLog, *, minted_by_ingest: bool
) -> None:
    """A-18: a second session gets a conflict, for minted ids too."""
    await create_session(context)
    await create_session(context, "ses_2")
    command = prompt_command() if minted_by_ingest else prompt_command(id="msg_1")
    first = await prompt(context, "default", command)

    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command(id=first.id, sessionID="ses_2"))

    assert len(await events(eventlog, Address("default", "ses_2"))) == 1
    assert (await prompt(context, "default", prompt_command(id=first.id))) == first


async def test_two_tenants_may_use_one_message_id(context: CommandContext) -> None:
    """A-18: ids are unique inside a tenant."""
    for tenant in ("ours", "theirs"):
        await create(context, tenant, create_command(id="ses_1"))
        receipt = await prompt(context, tenant, prompt_command(id="msg_1"))
        assert receipt.admitted_seq == 2


async def test_the_id_of_a_visible_message_is_refused(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-19: the id of a synthetic message is taken too."""
    await create_session(context)
    await append_events(eventlog, SyntheticAdded(message_id="msg_s", text="note"))

    with pytest.raises(Conflict):
        await prompt(context, "default", prompt_command(id="msg_s"))

    assert await admissions(eventlog) == []


async def test_a_full_inbox_refuses_more_but_not_a_retry(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-30: the refusal names the limit, and nothing is written."""
    await create_session(context)
    first = await prompt(context, "default", prompt_command(id="msg_1"))
    for _ in range(2):
        await prompt(context, "default", prompt_command())

    with pytest.raises(LimitReached, match="3 inputs"):
        await prompt(context, "default", prompt_command())

    assert await prompt(context, "default", prompt_command(id="msg_1")) == first
    assert len(await admissions(eventlog)) == 3


@pytest.mark.parametrize("text", ["", "  \n\t "])
async def test_a_prompt_says_something(context: CommandContext, text: str) -> None:
    """A-10: the refusal names the field; a file makes up for an empty text."""
    await create_session(context)

    with pytest.raises(InvalidRequest) as refusal:
        await prompt(context, "default", prompt_command(text))
    with_file = {"text": text, "files": [{"uri": "a.png"}]}
    receipt = await prompt(context, "default", prompt_command(prompt=with_file))

    assert refusal.value.body.field == "prompt.text"
    assert receipt.prompt.files is not None
    assert receipt.prompt.files[0].mime == "image/png"


@pytest.mark.parametrize("text", ["x" * 2100, "é" * 1100], ids=["ascii", "two bytes each"])
async def test_an_oversize_prompt_is_refused_by_its_bytes(
    context: CommandContext, eventlog: EventLog, text: str
) -> None:
    """A-10: the limit counts bytes, as the log does."""
    await create_session(context)

    with pytest.raises(PayloadTooLarge, match="2000"):
        await prompt(context, "default", prompt_command(text))

    assert await admissions(eventlog) == []


async def test_without_any_model_nothing_is_admitted(eventlog: EventLog) -> None:
    """O-29: the refusal names the missing setting."""
    context = CommandContext(
        eventlog, IngestSettings(Config(location=LocationConfig(default="/work")))
    )
    await create_session(context)

    with pytest.raises(InvalidRequest, match="default_model"):
        await prompt(context, "default", prompt_command())

    assert wakes(eventlog) == []


async def test_an_id_that_a_service_minted_makes_its_prompt_repeatable(
    context: CommandContext, eventlog: EventLog
) -> None:
    """D4: the gateway sends it again; two ingests may handle it, at once or late."""
    await create_session(context)
    other = CommandContext(eventlog, settings())
    command = prompt_command(mintedID=ids.message_id())

    receipts = await asyncio.gather(
        *(prompt(served_by, "default", command) for served_by in (context, other, context))
    )

    assert {receipt.id for receipt in receipts} == {command.minted_id}
    assert receipts[0] == receipts[1] == receipts[2]
    assert [event.type for event in await events(eventlog)].count("prompt.admitted") == 1


async def test_only_services_mint_ids(context: CommandContext) -> None:
    """A tenant's own client could use one id in two sessions."""
    await create_session(context)

    with pytest.raises(InvalidRequest, match="mint"):
        await prompt(context, "default", prompt_command(mintedID="msg_without_a_seal"))
    with (
        caller_of(subjects.as_principal("default", "key:ci", "session.prompt"), None),
        pytest.raises(InvalidRequest, match="mint"),
    ):
        await prompt(context, "default", prompt_command(mintedID=ids.message_id()))
