"""The verbs for pending input: list, cancel and edit, which refuse promoted input."""

import asyncio

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.cancel import cancel
from fairlead_ingest.verbs.input.edit import edit
from fairlead_ingest.verbs.input.pending import pending
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.input import CancelInput, EditPendingInput
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import (
    Conflict,
    InvalidRequest,
    LimitReached,
    MessageNotFound,
    PayloadTooLarge,
)
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
)
from fairlead_schema.prompt import Prompt, Receipt
from services.ingest.tests.conftest import (
    append_events,
    create_session,
    events,
    prompt_command,
    wakes,
)

SESSION = {"sessionID": "ses_1"}
PROMOTED = PromptPromoted(message_id="msg_1", prompt=Prompt(text="hello"), created=1)
DISPATCHED = AttemptDispatched(
    attempt_id="att_1",
    assistant_message_id="msg_a",
    agent="build",
    model=ModelRef(provider_id="acme", id="fast"),
    step=1,
)


def cancel_input(message_id: str = "msg_1") -> CancelInput:
    return CancelInput.model_validate({**SESSION, "messageID": message_id})


def edit_input(**fields: object) -> EditPendingInput:
    return EditPendingInput.model_validate({**SESSION, "messageID": "msg_1", **fields})


async def pending_receipts(context: CommandContext) -> list[Receipt]:
    answer = await pending(context, "default", SessionCommand.model_validate(SESSION))
    return list(answer.inputs)


async def admit_inputs(
    context: CommandContext, *ids: str, delivery: str = "steer"
) -> list[Receipt]:
    """Create a session and admit inputs that request no work."""
    await create_session(context)
    return [
        await prompt(context, "default", prompt_command(id=id_, delivery=delivery, resume=False))
        for id_ in ids
    ]


async def test_pending_inputs_are_the_receipts_of_admission(context: CommandContext) -> None:
    """A-31, P-29: the list keeps the order and leaves out promoted inputs."""
    receipts = await admit_inputs(context, "msg_1", "msg_2", "msg_3")
    assert await pending_receipts(context) == receipts

    await append_events(context.eventlog, PROMOTED)

    assert await pending_receipts(context) == receipts[1:]


async def test_a_withdrawn_input_makes_room(context: CommandContext, eventlog: EventLog) -> None:
    """A-30, P-05: a full inbox takes input again, and the cancellation wakes nobody."""
    await admit_inputs(context, "msg_1", "msg_2", "msg_3")
    with pytest.raises(LimitReached):
        await prompt(context, "default", prompt_command(id="msg_4"))

    answer = await cancel(context, "default", cancel_input())

    assert answer.seq == 5
    assert InputCancelled(message_id="msg_1") in await events(eventlog)
    assert [receipt.id for receipt in await pending_receipts(context)] == ["msg_2", "msg_3"]
    await prompt(context, "default", prompt_command(id="msg_4", resume=False))
    await context.waker.shutdown()
    assert wakes(eventlog) == []


async def test_an_edit_changes_the_receipt(context: CommandContext, eventlog: EventLog) -> None:
    """B-03, P-29: text and delivery change separately; the place in the inbox stays."""
    (receipt,) = await admit_inputs(context, "msg_1", delivery="queue")

    steer = await edit(context, "default", edit_input(delivery="steer"))
    new_text = await edit(context, "default", edit_input(prompt={"text": "better"}))
    repeated_edit = await edit(context, "default", edit_input(prompt={"text": "better"}))

    assert (steer.delivery, steer.prompt.text) == ("steer", "hello")
    assert (new_text.delivery, new_text.prompt.text) == ("steer", "better")
    assert new_text.admitted_seq == receipt.admitted_seq
    assert await pending_receipts(context) == [new_text] == [repeated_edit]
    edits = [event for event in await events(eventlog) if isinstance(event, InputEdited)]
    assert len(edits) == 2


async def test_a_promoted_input_is_neither_withdrawn_nor_changed(
    context: CommandContext, eventlog: EventLog
) -> None:
    """B-03, P-29: the conflict names the message, and no event is written."""
    await admit_inputs(context, "msg_1")
    await append_events(eventlog, PROMOTED)
    before = await events(eventlog)

    for attempt in (
        cancel(context, "default", cancel_input()),
        edit(context, "default", edit_input(delivery="queue")),
    ):
        with pytest.raises(Conflict) as refusal:
            await attempt
        assert refusal.value.body.resource == "msg_1"

    assert await events(eventlog) == before


async def test_what_is_not_in_the_inbox_is_not_found(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-29: this holds for an unknown input and for a cancelled one."""
    await admit_inputs(context, "msg_1")
    await cancel(context, "default", cancel_input())
    before = await events(eventlog)

    for message_id in ("msg_1", "msg_9"):
        with pytest.raises(MessageNotFound):
            await cancel(context, "default", cancel_input(message_id))
    with pytest.raises(MessageNotFound):
        await edit(context, "default", edit_input(delivery="queue"))

    assert await events(eventlog) == before


async def test_an_edit_is_judged_like_a_prompt(context: CommandContext) -> None:
    """A-10: an empty prompt and a too large one are refused."""
    await admit_inputs(context, "msg_1")

    with pytest.raises(InvalidRequest):
        await edit(context, "default", edit_input(prompt={"text": " "}))
    with pytest.raises(PayloadTooLarge):
        await edit(context, "default", edit_input(prompt={"text": "x" * 2100}))


async def test_promotion_and_withdrawal_race_and_one_of_them_wins(
    context: CommandContext, eventlog: EventLog
) -> None:
    """B-05: the loser of the race sees the event of the winner."""
    await admit_inputs(context, "msg_1")

    withdrawal, _ = await asyncio.gather(
        cancel(context, "default", cancel_input()),
        append_events(eventlog, PROMOTED),
        return_exceptions=True,
    )

    kinds = [type(event) for event in await events(eventlog)]
    assert kinds.count(InputCancelled) + kinds.count(PromptPromoted) == 1
    assert isinstance(withdrawal, Conflict) == (PromptPromoted in kinds)


async def test_a_steer_reaches_the_turn_it_expects_or_none(
    context: CommandContext, eventlog: EventLog
) -> None:
    """P-05: a different turn, or none, is a conflict, and nothing is admitted."""
    await create_session(context)
    with pytest.raises(Conflict, match="msg_a"):
        await prompt(context, "default", prompt_command(expectedTurn="msg_a"))
    await append_events(
        eventlog, ExecutionClaimed(generation=1, runner="run_a"), PROMOTED, DISPATCHED
    )

    receipt = await prompt(context, "default", prompt_command(expectedTurn="msg_a"))
    with pytest.raises(Conflict, match="msg_b"):
        await prompt(context, "default", prompt_command(expectedTurn="msg_b"))
    with pytest.raises(InvalidRequest, match="steer"):
        await prompt(context, "default", prompt_command(expectedTurn="msg_a", delivery="queue"))

    admissions = [event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]
    assert [event.message_id for event in admissions] == [receipt.id]
