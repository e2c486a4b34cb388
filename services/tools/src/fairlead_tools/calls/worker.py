"""Takes requests from the work queue and runs their calls. A request is a hint: the log says whether."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import TOOL_DEADLINE_S, TOOLS, tools_consumer
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.location import LocationRef
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.supervise import report_defects, supervise
from fairlead_session.fold.calls import find_call
from fairlead_session.people.asks import AgentRules
from fairlead_tools.calls.execution import error_text, tool_crash
from fairlead_tools.calls.lifecycle import CallLifecycle
from fairlead_tools.calls.taken_request import Held
from fairlead_tools.metrics import CALLS
from fairlead_tools.registry.registry import Registry

log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 3.0
RETRY_S: Final = 1.0
# Only what failed in this code counts: a request that waits is delivered any number of times.
DEFECTS_MAX: Final = 5
DEFECTS_KNOWN_MAX: Final = 4096
# After the grace time: how long stopped calls may take to settle or to be put back.
LAST_S: Final = 8.0
# How soon a request is looked at again whose location has as many calls as it may.
CROWDED_S: Final = 0.25

DEFAULT_RULES: Final[AgentRules] = Config().rules

assert HEARTBEAT_S * 3 < TOOL_DEADLINE_S, "two heartbeats may be lost"

Key: TypeAlias = tuple[Address, MessageId, CallId]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and the session it was addressed to."""

    at: Address
    request: ToolRequest

    @property
    def key(self) -> Key:
        return self.at, self.request.assistant_message_id, self.request.call_id


class MalformedRequest(Exception):
    """A message that is no request and never will be."""


def read(job: Job) -> Asked:
    """What a message asks for. Raises Poison."""
    try:
        request = ToolRequest.model_validate_json(job.payload)
    except ValidationError as error:
        raise MalformedRequest(error.errors()[0]["msg"]) from error
    _root, _kind, _pool, tenant, session_id = job.subject.split(".")
    if session_id != request.session_id:
        raise MalformedRequest(f"addressed to {session_id}, asks for {request.session_id}")
    return Asked(Address(tenant, session_id), request)


class ToolWorker:
    """Every call that one worker has in its hands."""

    def __init__(
        self,
        worker: WorkerId,
        eventlog: EventLog,
        registry: Registry,
        settings: ToolsConfig,
        rules: AgentRules = DEFAULT_RULES,
    ) -> None:
        self._eventlog = eventlog
        self._settings = settings
        self._life = CallLifecycle(worker, eventlog, registry, settings, rules)
        self._held: dict[Key, Held] = {}
        self._next: dict[Key, Job] = {}
        self._busy: Counter[LocationRef | None] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = Slots(settings.concurrency)
        self._worker = worker
        self._defects: Counter[int] = Counter()

    @property
    def life(self) -> CallLifecycle:
        """Who lives this worker's calls through."""
        return self._life

    async def run(self) -> None:
        """Take requests for ever."""
        report = report_defects(LogError)
        await supervise("taking tool requests", self._take_requests, report=report)

    async def _take_requests(self) -> None:
        consumer = tools_consumer(self._settings.pool)
        async for job in self._eventlog.work.take(TOOLS.name, consumer, self._slots):
            task = asyncio.create_task(self._on_job(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def heartbeat(self, every_s: float = HEARTBEAT_S) -> None:
        """Keep every held request in progress, so that nobody else is given it."""
        while True:
            await asyncio.sleep(every_s)
            for job in (*(held.job for held in self._held.values()), *self._next.values()):
                with suppress(LogError):
                    await job.extend()

    async def shutdown(self) -> None:
        """Finish within the grace time; then stop what is left, which settles or is put back."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.grace_s)
        self._life.over = True
        self._life.retention.hurry()
        for held in self._held.values():
            held.stop("leaving")
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=LAST_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=RETRY_S)
        for job in self._next.values():
            with suppress(LogError):
                await job.retry_later(0.0)

    async def _on_job(self, job: Job) -> None:
        """Serve a request, then any newer request for its call, all in the slot of the first."""
        async with job:
            request: Job | None = job
            while request is not None:
                await self._handle(request)
                request = self._take_next(request)

    async def _handle(self, job: Job) -> None:
        try:
            end = await self._served(job)
        except MalformedRequest as poison:
            log.warning("poison request", extra={"subject": job.subject, "reason": str(poison)})
            end = await self._bury(job, "poison", str(poison))
        except RecordError as error:
            log.warning("session cannot be read", extra=_why(job, error))
            await self._told(job, error)
            end = await self._bury(job, "unreadable", str(error))
        except CommitTooLarge as error:
            log.warning("call unrecordable", extra=_why(job, error))
            await self._told(job, RuntimeError(f"it cannot be recorded: {error}"))
            end = await self._finished(job, "refused")
        except LogError as error:
            # Not acknowledged: the request comes again, and the log says what is left to do.
            log.warning("request deferred", extra=_why(job, error))
            end = "unavailable"
        except Exception as error:
            log.exception("request failed", extra={"subject": job.subject})
            end = await self._on_defect(job, error)
        CALLS.labels(end).inc()

    async def _served(self, job: Job) -> str:
        asked = read(job)
        held = self._held.get(asked.key)
        if held is not None:
            return await self._joined(asked.key, held, job)
        held = self._held[asked.key] = Held(job)
        try:
            return await self._in_turn(asked, held)
        finally:
            del self._held[asked.key]

    def _take_next(self, job: Job) -> Job | None:
        """The newer request for the call of a finished one, unless another task serves the call."""
        if not self._next:
            return None
        try:
            key = read(job).key
        except MalformedRequest:
            return None
        return None if key in self._held else self._next.pop(key, None)

    async def _joined(self, key: Key, held: Held, job: Job) -> str:
        """A request for a call that is in hand.

        The same message again: its newest delivery is the one to acknowledge. Another one may know
        more than the first was decided from, a person's answer for example: it comes right after.
        """
        if held.job.sequence == job.sequence:
            held.job = job
            return "joined"
        earlier = self._next.get(key)
        self._next[key] = job
        if earlier is not None and earlier.sequence != job.sequence:
            await earlier.ack()
        return "joined"

    async def _in_turn(self, asked: Asked, held: Held) -> str:
        """Serve a request unless its location has its share: then it waits in the queue.

        A busy location must not take every slot, nor hold one while it waits.
        """
        location = await self._life.location(asked.at, asked.request)
        if self._busy[location] >= self._settings.location_concurrency:
            await held.job.retry_later(CROWDED_S)
            return "crowded"
        self._busy[location] += 1
        try:
            return await self._life.serve(asked.at, asked.request, held)
        finally:
            self._busy[location] -= 1
            if not self._busy[location]:
                del self._busy[location]

    async def _on_defect(self, job: Job, error: Exception) -> str:
        """Let the request come again; one that never gets through is given up, and its call told."""
        self._defects[job.sequence] += 1
        if self._defects[job.sequence] < DEFECTS_MAX:
            if len(self._defects) > DEFECTS_KNOWN_MAX:
                self._defects.clear()
            return "defect"
        del self._defects[job.sequence]
        await self._told(job, error)
        return await self._bury(job, "defect", repr(error))

    async def _told(self, job: Job, error: Exception) -> None:
        """Settle a call that cannot be served, as far as its log can be read: nobody waits for ever.

        Not one that somebody else works on: only this worker's handling of it failed.
        """
        asked = read(job)
        try:
            session = await self._life.read(asked.at)
            call = find_call(session, asked.request.assistant_message_id, asked.request.call_id)
            if call is None or call.worker not in {None, self._worker} or call.deferred_until:
                return
            await self._life.conclude(asked.at, call, tool_crash(error_text(error)))
        except Exception:
            log.exception("call left unsettled", extra={"subject": job.subject})

    async def _bury(self, job: Job, end: str, reason: str) -> str:
        with suppress(LogError):
            await self._eventlog.dead_letters.add("tool", job.subject, job.payload, reason)
            await job.ack()
        return end

    async def _finished(self, job: Job, end: str) -> str:
        with suppress(LogError):
            await job.ack()
        return end


def _why(job: Job, error: Exception) -> dict[str, str]:
    return {"subject": job.subject, "reason": str(error)}
