"""Durable intake: a caller publishes a prompt and reads its receipt from a subject later."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.registers import MemoryReceipts
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.slots import Slots
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.intake import admit_published_prompts
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema import subjects
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.subjects import Address
from fairlead_testing.newer_release import newer_commit, newer_release
from services.ingest.tests.conftest import (
    AT,
    create_session,
    events,
    jobs,
    settings,
    wait_until,
    wakes,
)


@asynccontextmanager
async def run_intake(context: CommandContext) -> AsyncIterator[None]:
    task = asyncio.create_task(admit_published_prompts(context, heartbeat_s=0.01))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def publish_and_admit(context: CommandContext, *payloads: object, at: Address = AT) -> None:
    """Publish prompts and wait until the intake has taken them all."""
    for payload in payloads:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        await context.eventlog.work.put(subjects.prompt(at), body)
    async with run_intake(context):
        await wait_until(lambda: not jobs(context.eventlog, "PROMPTS"))


async def admissions(eventlog: EventLog) -> list[PromptAdmitted]:
    return [event for event in await events(eventlog) if isinstance(event, PromptAdmitted)]


def receipts(eventlog: EventLog) -> list[tuple[str, dict[str, Any]]]:
    assert isinstance(eventlog.receipts, MemoryReceipts)
    return [(subject, json.loads(answer)) for subject, answer in eventlog.receipts.answers.items()]


def dead_letters(eventlog: EventLog) -> list[tuple[str, str, bytes, str]]:
    assert isinstance(eventlog.dead_letters, MemoryDeadLetters)
    return eventlog.dead_letters.letters


async def test_a_published_prompt_is_admitted_and_its_receipt_waits(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-11, A-23: the session wakes, and the receipt lies on the message's own subject."""
    await create_session(context)

    await publish_and_admit(context, {"id": "msg_1", "prompt": {"text": "hi"}})

    ((subject, answer),) = receipts(eventlog)
    assert subject == subjects.receipt(AT, "msg_1")
    assert answer["data"]["admittedSeq"] == 2
    assert [event.message_id for event in await admissions(eventlog)] == ["msg_1"]
    await wait_until(lambda: len(wakes(eventlog)) == 1)


async def test_the_subject_says_which_session_is_meant(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-11: a body that names another session does not reach that session."""
    await create_session(context)
    await create_session(context, "ses_2")

    await publish_and_admit(context, {"sessionID": "ses_2", "prompt": {"text": "hi"}})

    assert len(await admissions(eventlog)) == 1
    assert len(await events(eventlog, Address("default", "ses_2"))) == 1


@pytest.mark.parametrize(
    "payload",
    [b"not json", b"[1]", b"\xff", {"prompt": {"text": 7}}, {"id": "x", "prompt": {"text": "a"}}],
    ids=["no json", "no object", "no text", "wrong type", "wrong id"],
)
async def test_poison_goes_to_the_dead_letters_and_is_acknowledged(
    context: CommandContext, eventlog: EventLog, payload: object
) -> None:
    """A-10: the letter has a reason, and the next prompt is admitted."""
    await create_session(context)

    await publish_and_admit(context, payload, {"prompt": {"text": "after"}})

    ((source, subject, _payload, reason),) = dead_letters(eventlog)
    assert (source, subject) == ("prompt", subjects.prompt(AT))
    assert reason
    assert [event.prompt.text for event in await admissions(eventlog)] == ["after"]


def answer_tags(eventlog: EventLog) -> dict[str, str | None]:
    """The tag of each refusal, and None for each receipt, by what follows the session."""
    prefix = subjects.receipt(AT, "")
    return {
        subject.removeprefix(prefix): answer.get("error", {}).get("_tag")
        for subject, answer in receipts(eventlog)
    }


async def test_a_refusal_is_an_answer_too(context: CommandContext, eventlog: EventLog) -> None:
    """A-10, A-16: a receipt later takes the place of a refusal, and no dead letter is left."""
    await publish_and_admit(context, {"id": "msg_1", "prompt": {"text": "hi"}})
    refused = answer_tags(eventlog)
    await create_session(context)
    await publish_and_admit(context, {"id": "msg_1", "prompt": {"text": "hi"}})

    assert refused == {"msg_1": "SessionNotFoundError", "msg_1.1": "SessionNotFoundError"}
    assert answer_tags(eventlog) == {"msg_1": None, "msg_1.1": "SessionNotFoundError"}
    assert dead_letters(eventlog) == []


async def test_a_conflict_leaves_the_receipt_of_its_id(
    context: CommandContext, eventlog: EventLog
) -> None:
    """D9, A-16: each publisher finds its answer: by the id, and by the sequence of its publication."""
    await create_session(context)
    await publish_and_admit(
        context,
        {"id": "msg_1", "prompt": {"text": "hi"}},
        {"id": "msg_1", "prompt": {"text": "other"}},
        {"id": "msg_1", "prompt": {"text": " "}},
    )

    assert answer_tags(eventlog) == {
        "msg_1": None,
        "msg_1.2": "ConflictError",
        "msg_1.3": "InvalidRequestError",
    }


async def test_a_slow_admission_keeps_its_prompt(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2: the deadline is short, and heartbeats extend it."""
    await create_session(context)
    bind = eventlog.message_ids.bind

    async def bind_slowly(*args: Any) -> str:  # noqa: ANN401
        (job,) = jobs(eventlog, "PROMPTS")
        await wait_until(lambda: job.extensions >= 2)
        return await bind(*args)

    monkeypatch.setattr(eventlog.message_ids, "bind", bind_slowly)
    body = json.dumps({"id": "msg_1", "prompt": {"text": "hi"}}).encode()
    await eventlog.work.put(subjects.prompt(AT), body)

    async with run_intake(context):
        await wait_until(lambda: not jobs(eventlog, "PROMPTS"))

    assert len(await admissions(eventlog)) == 1


async def test_a_prompt_for_a_session_of_a_newer_release_waits(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A13: a refusal would be final. A newer ingest admits the prompt."""
    await create_session(context)
    assert isinstance(eventlog.log, MemoryLog)
    await eventlog.log.append_raw(AT, newer_commit(2))
    body = json.dumps({"id": "msg_1", "prompt": {"text": "hi"}}).encode()
    await eventlog.work.put(subjects.prompt(AT), body)
    (job,) = jobs(eventlog, "PROMPTS")

    async with run_intake(context):
        await wait_until(lambda: job.deliveries > 6)
    assert job.delays[:6] == [1, 2, 4, 8, 16, 30]
    assert answer_tags(eventlog) == {}
    assert dead_letters(eventlog) == []

    with newer_release():
        eventlog.log.parse_again(AT)
        job.expire()
        async with run_intake(CommandContext(eventlog, settings())):
            await wait_until(lambda: not jobs(eventlog, "PROMPTS"))
    assert answer_tags(eventlog) == {"msg_1": None}
    assert len(await admissions(eventlog)) == 1


async def test_a_prompt_too_large_for_the_log_is_refused_not_retried(eventlog: EventLog) -> None:
    """A-10: redelivery of such a prompt would never end."""
    context = CommandContext(eventlog, settings(prompt_bytes_max=64 * 1024 * 1024))
    await create_session(context)
    huge = [{"uri": "data:text/plain," + "x" * 9_000_000}]

    await publish_and_admit(context, {"id": "msg_1", "prompt": {"text": "hi", "files": huge}})

    assert answer_tags(eventlog) == {"msg_1": "TooLargeError", "msg_1.1": "TooLargeError"}


async def test_a_redelivery_is_an_exact_retry(context: CommandContext, eventlog: EventLog) -> None:
    """A-14: after a lost acknowledgement nothing is admitted twice, with or without an id."""
    await create_session(context)
    for body in ({"id": "msg_1", "prompt": {"text": "hi"}}, {"prompt": {"text": "hi"}}):
        await eventlog.work.put(subjects.prompt(AT), json.dumps(body).encode())
    for job in tuple(jobs(eventlog, "PROMPTS")):
        job.expire()

    async with run_intake(context):
        await wait_until(lambda: not jobs(eventlog, "PROMPTS"))

    assert len(await admissions(eventlog)) == 2
    assert len({subject for subject, _answer in receipts(eventlog)}) == 2


async def test_without_an_id_equal_prompts_are_distinct_admissions(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A-13: each publication is one input."""
    await create_session(context)

    await publish_and_admit(context, *[{"prompt": {"text": "same"}}] * 3)

    ids = [event.message_id for event in await admissions(eventlog)]
    assert len(set(ids)) == 3


async def test_prompts_of_one_session_are_admitted_in_the_order_of_publication(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A20: the first admission is the slowest, and the others wait for it."""
    await create_session(context)
    pauses = iter([0.05, 0.03, 0.0])

    async def slow_prompt(*arguments: Any) -> Any:  # noqa: ANN401
        await asyncio.sleep(next(pauses))
        return await prompt(*arguments)

    monkeypatch.setattr("fairlead_ingest.intake.prompt", slow_prompt)
    names = [f"msg_{number}" for number in range(3)]

    await publish_and_admit(context, *({"id": id_, "prompt": {"text": id_}} for id_ in names))

    assert [event.message_id for event in await admissions(eventlog)] == names


async def test_a_prompt_waits_for_an_earlier_one_that_another_ingest_has(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A20: the earlier one is delivered elsewhere, and neither admitted nor acknowledged yet."""
    monkeypatch.setattr("fairlead_ingest.intake.PATIENCE_S", 0.01)
    await create_session(context)
    elsewhere = eventlog.work.take("PROMPTS", "ingest", Slots(1))
    for id_ in ("msg_1", "msg_2"):
        body = json.dumps({"id": id_, "prompt": {"text": id_}}).encode()
        await eventlog.work.put(subjects.prompt(AT), body)
    first = await anext(elsewhere)
    (_, second) = jobs(eventlog, "PROMPTS")

    async with run_intake(context):
        await wait_until(lambda: second.deliveries > 2)
        assert await admissions(eventlog) == []
        await first.retry_later(0.0)
        await wait_until(lambda: not jobs(eventlog, "PROMPTS"))

    assert [event.message_id for event in await admissions(eventlog)] == ["msg_1", "msg_2"]


async def test_a_prompt_of_another_session_does_not_wait(
    context: CommandContext, eventlog: EventLog
) -> None:
    """A20: sessions are admitted side by side."""
    await create_session(context)
    elsewhere = eventlog.work.take("PROMPTS", "ingest", Slots(1))
    held = Address("default", "ses_held")
    for at in (held, AT):
        body = json.dumps({"id": f"msg_{at.session_id}", "prompt": {"text": "hi"}}).encode()
        await eventlog.work.put(subjects.prompt(at), body)
    await anext(elsewhere)

    async with run_intake(context):
        await wait_until(lambda: len(jobs(eventlog, "PROMPTS")) == 1)

    assert len(await admissions(eventlog)) == 1
