"""Requests for tool calls: which calls need one, and how a request reaches a worker."""

import asyncio
from typing import Final, NamedTuple

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.process_life import PingResult, confirmed_life
from fairlead_eventlog.session_cache import Versioned
from fairlead_runner.runner_context import RunnerContext
from fairlead_schema import subjects
from fairlead_schema.events import SessionEvent, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.ids import now_ms
from fairlead_session.calls.snapshot import snapshot_call
from fairlead_session.people.pending import ready_calls
from fairlead_session.state.session import Session

# A worker reads a larger call from the log: the request need not carry the input a second time.
SNAPSHOT_LENGTH_MAX: Final = 16 * 1024


class CallRequest(NamedTuple):
    """A call to run, and how many people's answers it has: each answer needs a new request."""

    assistant_message_id: MessageId
    call_id: CallId
    answers: int = 0


def new_calls(events: tuple[SessionEvent, ...]) -> list[CallRequest]:
    """The local calls among events, without those that the events settle."""
    settlements = (event for event in events if isinstance(event, ToolFailed | ToolSucceeded))
    settled = {event.call_id for event in settlements}
    return [
        CallRequest(event.assistant_message_id, event.call_id)
        for event in events
        if isinstance(event, ToolCalled)
        and not event.provider.executed
        and event.call_id not in settled
    ]


def unstarted_calls(session: Session) -> list[CallRequest]:
    """The calls that no worker has started and no person delays: their request may be lost."""
    return [
        CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        for call in ready_calls(session)
        if call.worker is None
    ]


async def orphaned_calls(context: RunnerContext, session: Session) -> list[CallRequest]:
    """The started calls whose worker is gone, and the deferred calls whose time has passed.

    Their requests are redelivered, unless they were lost with a server (docs/adr/0021). The next
    worker ends a `once` call, so two looks confirm that a worker is gone.
    """
    workers = {call.worker for call in session.calls if call.worker and call.deferred_until is None}
    gone = await _gone_workers(context, workers)
    return [
        CallRequest(call.assistant_message_id, call.call_id, len(call.grants))
        for call in session.calls
        if (call.worker in gone if call.deferred_until is None else call.deferred_until < now_ms())
    ]


async def _gone_workers(context: RunnerContext, workers: set[WorkerId]) -> set[WorkerId]:
    settings = context.settings

    async def look(worker: WorkerId) -> PingResult:
        return await confirmed_life(
            context.eventlog.liveness,
            worker,
            timeout_s=settings.config.runner.ping_timeout_s,
            second_look_s=settings.timings.worker_second_look_s,
        )

    lives = await asyncio.gather(*(look(worker) for worker in workers))
    return {worker for worker, life in zip(workers, lives, strict=True) if life == "gone"}


async def send_calls(
    eventlog: EventLog,
    at: Address,
    pool: str,
    calls: list[CallRequest],
    *,
    token: str,
    versioned: Versioned[Session] | None = None,
) -> None:
    """Request durable calls from a pool. A repeated request is harmless: the log admits one start.

    The server keeps one request per call and token; a reason to ask again is a new token. With the
    current session, each request carries a snapshot of its call and spares the worker a read.
    """
    for call in calls:
        message_id, call_id, answers = call
        await eventlog.work.put(
            subjects.tool(at, pool),
            _encode(at, call, versioned),
            once=f"{at.session_id}:{message_id}:{call_id}:{token}:{answers}",
        )


def _encode(at: Address, call: CallRequest, versioned: Versioned[Session] | None) -> bytes:
    """The request, with a snapshot of its call unless the snapshot is too long."""
    message_id, call_id, _ = call
    request = ToolRequest(
        session_id=at.session_id, assistant_message_id=message_id, call_id=call_id
    )
    snapshot = versioned and snapshot_call(
        versioned.state, versioned.head.position, message_id, call_id
    )
    if snapshot:
        complete = request.model_copy(update={"snapshot": snapshot}).model_dump_json(by_alias=True)
        if len(complete) <= SNAPSHOT_LENGTH_MAX:
            return complete.encode()
    return request.model_dump_json(by_alias=True).encode()
