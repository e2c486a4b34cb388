"""Every prompt that ingest receives is admitted or refused, and both are counted (A-11, A-23)."""

import asyncio
import json

import pytest
from prometheus_client import REGISTRY

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_ingest.app import Ingest
from fairlead_ingest.command_context import CommandContext
from fairlead_schema import subjects
from services.ingest.tests.conftest import AT, create_session, jobs, settings, wait_until
from services.ingest.tests.test_intake import publish_and_admit, run_intake

NAMES = ("received", "admitted", "refused", "put_back", "repeated")


def totals() -> dict[str, float]:
    """Each counter of prompts, over all its labels."""
    return {
        name: sum(
            sample.value
            for metric in REGISTRY.collect()
            for sample in metric.samples
            if sample.name == f"fairlead_prompts_{name}_total"
        )
        for name in NAMES
    }


def change(before: dict[str, float]) -> tuple[float, ...]:
    after = totals()
    return tuple(after[name] - before[name] for name in NAMES)


def body(message_id: str, text: object = "hi") -> bytes:
    return json.dumps(
        {"sessionID": AT.session_id, "id": message_id, "prompt": {"text": text}}
    ).encode()


async def send(context: CommandContext, *bodies: bytes) -> None:
    """Send requests to the verb, as its server gets them."""
    ingest = Ingest(settings())
    ingest._context = context  # noqa: SLF001 - without a server nothing connects
    subject = subjects.api(AT.tenant, "session.prompt")
    (door,) = [
        door
        for door in ingest.server._local_doors  # noqa: SLF001
        if door.pattern == subjects.api("*", "session.prompt")
    ]
    for request in bodies:
        await door.respond(subject, None, request)


async def test_requests_are_admitted_or_refused_and_exact_retries_are_admitted_again(
    context: CommandContext,
) -> None:
    await create_session(context)
    before = totals()

    await send(context, body("msg_1"), body("msg_1"), body("msg_1", "another"), b"no json")
    await send(context, body("msg_2", 7), body("msg_2"))

    assert change(before) == (6, 3, 3, 0, 1)


async def test_published_prompts_are_admitted_or_refused_too(context: CommandContext) -> None:
    await create_session(context)
    before = totals()

    await publish_and_admit(
        context,
        {"id": "msg_1", "prompt": {"text": "hi"}},
        {"id": "msg_1", "prompt": {"text": "hi"}},
        {"id": "msg_1", "prompt": {"text": "another"}},
        b"poison",
    )
    await asyncio.sleep(0)

    assert change(before) == (4, 2, 2, 0, 1)


async def test_a_prompt_without_an_answer_is_put_back_and_counted_again(
    context: CommandContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log fails once, before the append: the prompt comes again and is admitted once."""
    await create_session(context)
    before, append = totals(), MemoryLog.append
    failures = iter([LogUnavailable("no leader")])

    async def fail_once(self: MemoryLog, *args: object, **options: object) -> object:
        for failure in failures:
            raise failure
        return await append(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryLog, "append", fail_once)
    await context.eventlog.work.put(subjects.prompt(AT), body("msg_1"))
    async with run_intake(context):
        await wait_until(lambda: change(before)[3] == 1)
        (message,) = jobs(context.eventlog, "PROMPTS")
        message.expire()
        await wait_until(lambda: not jobs(context.eventlog, "PROMPTS"))
    await asyncio.sleep(0)

    received, admitted, refused, put_back, repeated = change(before)
    assert (admitted, refused, repeated) == (1, 0, 0)
    assert (received, put_back) == (2, 1)
