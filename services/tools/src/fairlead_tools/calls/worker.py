"""Takes requests from the work queue and handles their calls. A request is a hint: the log decides."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import Final, assert_never

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.ports import Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import TOOL_DEADLINE_S, TOOLS, tools_consumer
from fairlead_schema.ids import WorkerId
from fairlead_schema.record import NewerCommit, RecordError
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.held_work import hold_s
from fairlead_service.logs import log_with
from fairlead_service.supervise import report_defects, supervise
from fairlead_service.traces import names
from fairlead_service.traces.tracer import (
    NO_SPAN,
    Attributes,
    TraceSpan,
    is_tracing,
    open_consumer_span,
)
from fairlead_tools.calls.lifecycle import CallLifecycle
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.request import (
    Acknowledge,
    Handled,
    LeaveInQueue,
    MalformedRequest,
    PutBack,
    RequestKey,
    TakenRequest,
    parse_request,
)
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.location_shares import LocationShares
from fairlead_tools.metrics import CALLS
from fairlead_tools.registry.registry import Registry

log = logging.getLogger(__name__)

HEARTBEAT_S: Final = 3.0
# A request whose handling fails by a defect so often goes to the dead letters. Deliveries do not
# count: a request that waits is put back any number of times.
DEFECTS_MAX: Final = 5
DEFECTIVE_REQUESTS_MAX: Final = 4096
# After the grace time: how long stopped calls may take to settle, and cancelled ones to end.
SETTLE_S: Final = 8.0
CANCEL_S: Final = 1.0

DEFAULT_POLICY: Final = CallPolicy(Config().rules)
TIMINGS: Final = CallTimings()

assert HEARTBEAT_S * 3 < TOOL_DEADLINE_S, "two heartbeats may be lost"


class ToolWorker:
    """Handles requests side by side, each in a slot of the worker and a share of its location."""

    def __init__(
        self,
        worker: WorkerId,
        eventlog: EventLog,
        registry: Registry,
        settings: ToolsConfig,
        policy: CallPolicy = DEFAULT_POLICY,
        timings: CallTimings = TIMINGS,
    ) -> None:
        self.lifecycle = CallLifecycle(worker, eventlog, registry, settings, policy, timings)
        self._eventlog = eventlog
        self._settings = settings
        self._slots = Slots(settings.concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._deliveries: dict[RequestKey, Job] = {}
        """The newest delivery of each request that is handled now."""
        self._next: dict[RequestKey, Job] = {}
        """The newest further request for each call that is handled now."""
        self._locations = LocationShares(settings.location_concurrency)
        self._defects: Counter[int] = Counter()

    async def run(self) -> None:
        """Take requests until cancelled."""
        report = report_defects(LogError)
        await supervise("taking tool requests", self._take_requests, report=report)

    async def heartbeat(self, every_s: float = HEARTBEAT_S) -> None:
        """Extend every request that this worker has, so that no other worker gets it."""
        while True:
            await asyncio.sleep(every_s)
            for job in (*self._deliveries.values(), *self._next.values()):
                with suppress(LogError):
                    await job.extend()

    async def shutdown(self) -> None:
        """Let calls finish within the grace time. Then stop the others: each settles or is put back."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.grace_s)
        self.lifecycle.leave()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=SETTLE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CANCEL_S)
        for job in self._next.values():
            with suppress(LogError):
                await job.retry_later(0.0)

    async def _take_requests(self) -> None:
        consumer = tools_consumer(self._settings.pool)
        async for job in self._eventlog.work.take_fairly(TOOLS.name, consumer, self._slots):
            task = asyncio.create_task(self._work(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, job: Job) -> None:
        """Handle a request, then any newer request for its call, all in the slot of the first."""
        async with job:
            try:
                request = parse_request(job)
            except MalformedRequest as error:
                log.warning("request malformed: moved to dead letters", extra=_why(job, error))
                await self._bury(job, str(error))
                CALLS.labels("poison").inc()
                return
            delivery: Job | None = job
            while delivery is not None:
                at = request.at
                fields = log_with(
                    tenant=at.tenant, session_id=at.session_id, call_id=request.call_id
                )
                with fields, _open_span(delivery, request) as span:
                    end = await self._handle(request, delivery)
                    span.set({names.END: end})
                CALLS.labels(end).inc()
                handled_elsewhere = request.key in self._deliveries
                delivery = None if handled_elsewhere else self._next.pop(request.key, None)
                if delivery is not None:
                    request = parse_request(delivery)

    async def _handle(self, request: TakenRequest, job: Job) -> str:
        """Handle one request. No failure gets out of here. The answer says how the work ended."""
        try:
            return await self._handle_once(request, job)
        except NewerCommit as error:
            log.warning(
                "session of a newer release: its request is left to newer workers",
                extra=_why(job, error),
            )
            with suppress(LogError):
                await job.retry_later(hold_s(job.deliveries))
            return "newer"
        except RecordError as error:
            log.warning("session cannot be read: request to dead letters", extra=_why(job, error))
            await self._fail_call(request, error)
            await self._bury(job, str(error))
            return "unreadable"
        except CommitTooLarge as error:
            log.warning("call cannot be recorded: it fails", extra=_why(job, error))
            await self._fail_call(request, RuntimeError(f"it cannot be recorded: {error}"))
            with suppress(LogError):
                await job.ack()
            return "refused"
        except LogError as error:
            # Not acknowledged, so the request comes again. The log then says what is left to do.
            log.warning("log unavailable: the request comes again", extra=_why(job, error))
            return "unavailable"
        except Exception as error:
            log.exception(
                "request failed by a defect: it comes again, at last its call fails",
                extra={"subject": job.subject},
            )
            await self._note_defect(request, job, error)
            return "defect"

    async def _handle_once(self, request: TakenRequest, job: Job) -> str:
        """Handle a request, unless this worker handles one for the same call."""
        if request.key in self._deliveries:
            await self._join(request, job)
            return "joined"
        self._deliveries[request.key] = job
        try:
            handled = await self._handle_in_share(request)
            # A repeated delivery replaced the first: the queue listens to the newest one.
            await _finish(self._deliveries[request.key], handled)
            return handled.end
        finally:
            del self._deliveries[request.key]

    async def _join(self, request: TakenRequest, job: Job) -> None:
        """Keep a delivery for a call that is handled now.

        The same message again replaces its earlier delivery. Another message may know more, a
        person's answer for example: the newest one is handled right after.
        """
        if self._deliveries[request.key].sequence == job.sequence:
            self._deliveries[request.key] = job
            return
        earlier = self._next.get(request.key)
        self._next[request.key] = job
        if earlier is not None and earlier.sequence != job.sequence:
            await earlier.ack()

    async def _handle_in_share(self, request: TakenRequest) -> Handled:
        """Handle a request, unless its location runs as many calls as it may.

        A busy location must not take every slot, so its further requests wait in the queue.
        """
        location = await self.lifecycle.location(request)
        if not self._locations.enter(location):
            delay_s = self._locations.put_back(location, self._deliveries[request.key])
            return Handled("crowded", PutBack(delay_s))
        try:
            return await self.lifecycle.handle(request)
        finally:
            await self._locations.leave(location)

    async def _note_defect(self, request: TakenRequest, job: Job, error: Exception) -> None:
        """Let the request come again. After too many defects its call fails."""
        self._defects[job.sequence] += 1
        if self._defects[job.sequence] < DEFECTS_MAX:
            if len(self._defects) > DEFECTIVE_REQUESTS_MAX:
                self._defects.clear()
            return
        del self._defects[job.sequence]
        await self._fail_call(request, error)
        await self._bury(job, repr(error))

    async def _fail_call(self, request: TakenRequest, error: Exception) -> None:
        """Settle the call, as far as its log can be read, so that nobody waits for it for ever."""
        try:
            await self.lifecycle.fail(request, error)
        except Exception:
            ids = {"session_id": request.at.session_id, "call_id": request.call_id}
            log.exception("call cannot be settled: it stays open", extra=ids)

    async def _bury(self, job: Job, reason: str) -> None:
        with suppress(LogError):
            await self._eventlog.dead_letters.add("tool", job.subject, job.payload, reason)
            await job.ack()


async def _finish(job: Job, handled: Handled) -> None:
    match handled.then:
        case Acknowledge():
            await job.ack()
        case PutBack(delay_s=delay_s):
            await job.retry_later(delay_s)
        case LeaveInQueue():
            pass
        case _:
            assert_never(handled.then)


def _open_span(job: Job, request: TakenRequest) -> TraceSpan:
    """The span of a request for a call, below the span of the turn that made the call."""
    if not is_tracing():
        return NO_SPAN
    attributes: Attributes = {
        names.OPERATION: "execute_tool",
        names.CALL: request.call_id,
        names.DELIVERIES: job.deliveries,
    }
    return open_consumer_span(names.EXECUTE_TOOL, job.trace, attributes)


def _why(job: Job, error: Exception) -> dict[str, str]:
    return {"subject": job.subject, "reason": str(error)}
