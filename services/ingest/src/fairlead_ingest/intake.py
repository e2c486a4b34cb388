"""Durable intake: a service publishes a prompt and forgets it; the receipt waits on its subject."""

import asyncio
import logging
from hashlib import sha256

from pydantic_core import from_json, to_json

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_ingest.answers import data, parse, refusal, unreadable
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema import subjects
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.errors import InvalidRequest, PayloadTooLarge, Refused
from fairlead_schema.ids import MessageId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

JOBS_MAX = 64
DELIVERIES_MAX = 5


async def take_in(desk: CommandContext) -> None:
    """Admit published prompts for ever."""
    running: set[asyncio.Task[None]] = set()
    slots = Slots(JOBS_MAX)
    while True:
        try:
            async for job in desk.eventlog.work.take("PROMPTS", "ingest", slots):
                task = asyncio.create_task(_admit(desk, job))
                running.add(task)
                task.add_done_callback(running.discard)
        except LogError as error:
            log.warning("intake paused", extra={"reason": str(error)})
            await asyncio.sleep(1.0)


async def _admit(desk: CommandContext, job: Job) -> None:
    async with job:
        try:
            await _settle(desk, job)
            await job.ack()
        except LogError as error:
            # Not acknowledged: the message comes again, and an exact retry admits nothing twice.
            log.warning("intake deferred", extra={"subject": job.subject, "reason": str(error)})
        except Exception as error:
            log.exception("intake defect", extra={"subject": job.subject})
            if job.deliveries >= DELIVERIES_MAX:
                await desk.eventlog.dead_letters.add(
                    "prompt", job.subject, job.payload, repr(error)
                )
                await job.ack()


async def _settle(desk: CommandContext, job: Job) -> None:
    _root, _kind, tenant, session_id = job.subject.split(".")
    at = Address(tenant, session_id)
    try:
        command = _command(job, at)
    except InvalidRequest as poison:
        await desk.eventlog.dead_letters.add("prompt", job.subject, job.payload, str(poison))
        return
    try:
        answer = data(await prompt(desk, tenant, command))
    except Refused as refused:
        answer = refusal(refused)
    except CommitTooLarge as error:
        answer = refusal(PayloadTooLarge(str(error)))
    except RecordError as error:
        answer = refusal(unreadable(error))
    assert command.id is not None, "intake names every message"
    await desk.eventlog.work.put(subjects.receipt(at, command.id), answer)


def _command(job: Job, at: Address) -> AdmitPrompt:
    """The prompt, addressed by its subject. Without an id its place in the queue names it."""
    try:
        raw = from_json(job.payload)
    except ValueError as error:
        raise InvalidRequest(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InvalidRequest("not a JSON object")
    named = parse(AdmitPrompt, to_json({**raw, "sessionID": at.session_id}))
    if named.id is not None:
        return named
    return named.model_copy(update={"id": _derived(job)})


def _derived(job: Job) -> MessageId:
    return "msg_" + sha256(f"{job.subject}#{job.sequence}".encode()).hexdigest()[:26]
