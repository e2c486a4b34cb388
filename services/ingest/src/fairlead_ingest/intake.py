"""Durable intake: admits published prompts, and leaves each receipt under a subject of its own."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import Final

from pydantic_core import to_json

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import INTAKE_DEADLINE_S
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.metrics import PUT_BACK, PromptCount
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.errors import InvalidRequest, Refused
from fairlead_schema.ids import MessageId
from fairlead_schema.record import NewerCommit, RecordError
from fairlead_schema.subjects import Address
from fairlead_service.held_work import hold_s
from fairlead_service.logs import log_with
from fairlead_service.rpc.answers import Answerer, encode_data, parse_command, parse_json
from fairlead_service.supervise import Restarts, supervise
from fairlead_service.traces.names import INTAKE
from fairlead_service.traces.tracer import is_tracing, open_consumer_span

log = logging.getLogger(__name__)

JOBS_MAX = 64
DEFECTS_MAX = 5
DEFECTIVE_PROMPTS_MAX: Final = 4096
# A prompt waits here for an earlier one that another ingest has. The queue of a burst keeps its order so.
PATIENCE_S: Final = 3.0
PATIENT_DELIVERIES: Final = 3
LOOK_S: Final = 0.005
LOOK_S_MAX: Final = 0.1
# How soon a prompt comes again that waited in vain, for each of its deliveries.
WAIT_S: Final = 0.1
WAIT_S_MAX: Final = 30.0
STEADY_S: Final = 3.0
HEARTBEAT_S: Final = INTAKE_DEADLINE_S / 3
_ANSWERER = Answerer(LOG_REFUSALS)


async def admit_published_prompts(
    context: CommandContext,
    *,
    heartbeat_s: float = HEARTBEAT_S,
    restarts: Restarts | None = None,
) -> None:
    """Admit published prompts until the task is cancelled. `restarts` says why it cannot, if so.

    The deadline of a prompt is short, so that another ingest soon takes the prompts of a dead one.
    Heartbeats keep a slow admission.
    """
    restarts = restarts or Restarts(complaint=None)
    running: dict[asyncio.Task[None], Job] = {}
    slots, intake = Slots(JOBS_MAX), Intake(context)

    async def admit_all() -> None:
        # A queue that is missing fails at once. Nothing says that a queue is there but empty.
        steady = asyncio.get_running_loop().call_later(STEADY_S, restarts.healthy)
        try:
            async for job in context.eventlog.work.take("PROMPTS", "ingest", slots):
                task = asyncio.create_task(intake.handle(job))
                running[task] = job
                task.add_done_callback(running.pop)
        finally:
            steady.cancel()

    async def beat() -> None:
        while True:
            await asyncio.sleep(heartbeat_s)
            for job in tuple(running.values()):
                await job.extend()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervise("durable intake", admit_all, restarts=restarts))
        tasks.create_task(supervise("heartbeat of the durable intake", beat))


class Intake:
    """Admits the prompts of one session in the order of their publication, and sessions side by side."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._sessions: dict[str, asyncio.Lock] = {}
        self._waiting: Counter[str] = Counter()
        self._defects: Counter[int] = Counter()
        self._count = PromptCount("intake")

    async def handle(self, job: Job) -> None:
        """Handle a prompt when no earlier one of its session is left. No failure gets out of here."""
        until = time.monotonic() + PATIENCE_S
        _root, _kind, tenant, session_id = job.subject.split(".")
        trace = job.trace if is_tracing() else None
        with log_with(tenant=tenant, session_id=session_id), open_consumer_span(INTAKE, trace):
            await self._handle_in_turn(job, until)

    async def _handle_in_turn(self, job: Job, until: float) -> None:
        async with job, self._turn_of(job.subject):
            try:
                if await self._comes_first(job, until):
                    await self._admit(job)
                else:
                    # Another ingest has the earlier one, or it comes again after a failure.
                    await job.retry_later(min(WAIT_S * job.deliveries, WAIT_S_MAX))
            except NewerCommit as error:
                log.warning(
                    "session of a newer release: its prompt is left to a newer ingest",
                    extra={"subject": job.subject, "reason": str(error)},
                )
                with suppress(LogError):
                    await job.retry_later(hold_s(job.deliveries))
            except LogError as error:
                # It is not acknowledged, so it comes again. An exact retry admits nothing twice.
                log.warning(
                    "prompt not admitted: the server delivers it again",
                    extra={"subject": job.subject, "reason": str(error)},
                )
            except Exception as error:
                log.exception(
                    "prompt failed by a defect: it is tried again, then a dead letter",
                    extra={"subject": job.subject},
                )
                await self._note_defect(job, error)

    async def _admit(self, job: Job) -> None:
        """Answer the prompt and acknowledge it. Each delivery counts as answered or as put back."""
        self._count.receive()
        try:
            refused = await _admit_prompt(self._context, job)
            await job.ack()
        except BaseException:
            PUT_BACK.inc()
            raise
        self._count.answer(refused)

    async def _comes_first(self, job: Job, until: float) -> bool:
        """Wait until no earlier prompt is left. False: the earlier one takes long, so others need the slot."""
        pause_s = LOOK_S
        while not await self._context.eventlog.work.is_first("PROMPTS", job):
            if job.deliveries > PATIENT_DELIVERIES or time.monotonic() >= until:
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LOOK_S_MAX)
        return True

    @asynccontextmanager
    async def _turn_of(self, subject: str) -> AsyncIterator[None]:
        """Wait for the earlier prompts of a session that this process has. They come in order."""
        lock = self._sessions.setdefault(subject, asyncio.Lock())
        self._waiting[subject] += 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[subject] -= 1
            if not self._waiting[subject]:
                del self._waiting[subject], self._sessions[subject]

    async def _note_defect(self, job: Job, error: Exception) -> None:
        """Let the prompt come again. After too many defects it is a dead letter."""
        self._defects[job.sequence] += 1
        if self._defects[job.sequence] < DEFECTS_MAX:
            if len(self._defects) > DEFECTIVE_PROMPTS_MAX:
                self._defects.clear()
            return
        del self._defects[job.sequence]
        with suppress(LogError):
            letters = self._context.eventlog.dead_letters
            await letters.add("prompt", job.subject, job.payload, repr(error))
            await job.ack()


async def _admit_prompt(context: CommandContext, job: Job) -> Refused | None:
    """Admit the prompt, and store its receipt or refusal. The answer is the refusal, if any.

    A prompt that cannot be read becomes a dead letter.
    """
    _root, _kind, tenant, session_id = job.subject.split(".")
    at = Address(tenant, session_id)
    try:
        command = _parse_prompt(job, at)
    except InvalidRequest as error:
        await context.eventlog.dead_letters.add("prompt", job.subject, job.payload, str(error))
        return error
    assert command.id is not None, "every parsed prompt has an id"
    receipts = context.eventlog.receipts
    try:
        receipt = encode_data(await prompt(context, tenant, command))
    except NewerCommit:
        raise
    except (Refused, CommitTooLarge, RecordError) as error:
        answer = _ANSWERER.refuse(error, request=job.subject)
        await receipts.store_refusal(at, command.id, answer.body, publication=job.sequence)
        return answer.refused
    await receipts.store(at, command.id, receipt)
    return None


def _parse_prompt(job: Job, at: Address) -> AdmitPrompt:
    """The prompt of a job. Its subject names the session. Its sequence gives an id if it has none."""
    raw = parse_json(job.payload)
    if not isinstance(raw, dict):
        raise InvalidRequest("not a JSON object")
    command = parse_command(AdmitPrompt, to_json({**raw, "sessionID": at.session_id}))
    if command.id is not None:
        return command
    return command.model_copy(update={"id": _derive_id(job)})


def _derive_id(job: Job) -> MessageId:
    return "msg_" + sha256(f"{job.subject}#{job.sequence}".encode()).hexdigest()[:26]
