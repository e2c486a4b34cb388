"""Durable intake: a service publishes a prompt and forgets it; the receipt waits on its subject."""

import asyncio
import logging
from hashlib import sha256

from pydantic_core import to_json

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_eventlog.slots import Slots
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema import subjects
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.errors import InvalidRequest, Refused
from fairlead_schema.ids import MessageId
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service.rpc.answers import Answerer, encode_data, parse_command, parse_json
from fairlead_service.supervise import supervise

log = logging.getLogger(__name__)

JOBS_MAX = 64
DELIVERIES_MAX = 5
_ANSWERER = Answerer(LOG_REFUSALS)


async def take_in(desk: CommandContext) -> None:
    """Admit published prompts for ever."""
    running: set[asyncio.Task[None]] = set()
    slots = Slots(JOBS_MAX)

    async def admit_all() -> None:
        async for job in desk.eventlog.work.take("PROMPTS", "ingest", slots):
            task = asyncio.create_task(_admit(desk, job))
            running.add(task)
            task.add_done_callback(running.discard)

    await supervise("durable intake", admit_all)


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
        answer = encode_data(await prompt(desk, tenant, command))
    except (Refused, CommitTooLarge, RecordError) as error:
        answer = _ANSWERER.refuse(error).body
    assert command.id is not None, "intake names every message"
    await desk.eventlog.work.put(subjects.receipt(at, command.id), answer)


def _command(job: Job, at: Address) -> AdmitPrompt:
    """The prompt, addressed by its subject. Without an id its place in the queue names it."""
    raw = parse_json(job.payload)
    if not isinstance(raw, dict):
        raise InvalidRequest("not a JSON object")
    named = parse_command(AdmitPrompt, to_json({**raw, "sessionID": at.session_id}))
    if named.id is not None:
        return named
    return named.model_copy(update={"id": _derived(job)})


def _derived(job: Job) -> MessageId:
    return "msg_" + sha256(f"{job.subject}#{job.sequence}".encode()).hexdigest()[:26]
