"""The life of one call in a worker: begun in the log, run, settled in the log, its session woken."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias, assert_never

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import CommitTooLarge, LogError, SessionErased
from fairlead_eventlog.session_writer import AssumedState
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.ids import now_ms
from fairlead_session.calls.lifecycle import (
    INTERRUPTED,
    Failed,
    NotOpen,
    Outcome,
    Settle,
    Succeeded,
    defer,
    settle,
)
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.fold.calls import find_call
from fairlead_session.next_move import is_moving
from fairlead_session.people.asks import AgentRules
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.begin import Asked, BeginDecider, Decided, Duplicate, Left, Ready
from fairlead_tools.calls.execution import Stopped, error_text, tool_crash
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.opening import Opening
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.progress import CallProgress
from fairlead_tools.calls.run import Run
from fairlead_tools.calls.taken_request import Held, Unheld
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import DeferredCall

log = logging.getLogger(__name__)

LAG_S: Final = 0.2

Abandon: TypeAlias = Callable[[Address, MessageId, CallId], Awaitable[None]]
"""Ends what may still be at work for a call that is settled."""

_AT_ONCE: Final = {Settle: "interrupted", Failed: "refused", Succeeded: "succeeded"}


class CallLifecycle:
    """Lives calls through for one worker."""

    def __init__(
        self,
        worker: WorkerId,
        eventlog: EventLog,
        registry: Registry,
        settings: ToolsConfig,
        rules: AgentRules,
    ) -> None:
        self.retention = OutputRetention(
            eventlog.outputs,
            OutputLimits(settings.output_lines_max, settings.output_bytes_max),
            settings.media_bytes_max,
        )
        self._eventlog = eventlog
        self._ledger = CallLog(eventlog)
        begins = BeginDecider(worker, eventlog, registry, self.retention, rules)
        self._opening = Opening(begins, eventlog, self._ledger, self.retention, settings.spool_dir)
        self.over = False
        self.abandon: Abandon | None = None

    async def location(self, at: Address, request: ToolRequest) -> LocationRef | None:
        """Where a call runs."""
        if request.snapshot is not None:
            return request.snapshot.location
        return await self._ledger.location(at)

    async def serve(self, at: Address, request: ToolRequest, held: Held) -> str:
        """Do what is left to do of a call; the answer says how it ended."""
        try:
            if self.over:
                await held.job.retry_later(0.0)
                return "left"
            begun, decided = await self._opening.open(at, request, held)
            return await self._done(at, request, held, begun, decided)
        except SessionErased:
            await self._erased(at)
            await held.job.ack()
            return "gone"
        finally:
            if held.run is not None:
                await held.run.drop()

    async def _erased(self, at: Address) -> None:
        """Leave nothing of a session that is gone: an output may have been kept after its purge."""
        with suppress(LogError):
            await self._eventlog.outputs.remove_all(at)

    async def _done(
        self,
        at: Address,
        request: ToolRequest,
        held: Held,
        begun: AssumedState[Session],
        decided: Decided,
    ) -> str:
        session = begun.state
        match decided:
            case Ready():
                held.begun = begun
                held.run = held.run or self._opening.run(at, decided)
                return await self._ended(held.run, held, session.seq)
            case Asked():
                return await self._asked(at, session, held)
            case Left(delay_s=delay_s):
                await held.job.retry_later(delay_s)
                return "left"
            case Duplicate():
                await held.job.ack()
                return "spare"
            case NotOpen():
                return await self._gone(at, session, request, held)
            case Settle() | Failed() | Succeeded():
                log.info("call settled at once", extra=_ids(at, request.call_id))
                await self._wake(at, session, held)
                return _AT_ONCE[type(decided)]
            case _:
                assert_never(decided)

    async def _ended(self, run: Run, held: Held, seq: int) -> str:
        if self.over:
            run.stop("leaving")
        ended = await run.ended(seq)
        at, call = run.at, run.call
        # From here on nothing outside can stop what the tool returned from being settled.
        if isinstance(ended, Stopped):
            log.info("call stopped", extra={**_ids(at, call.call_id), "why": ended.why})
            if ended.why == "leaving" and call.retry != "once":
                await held.job.retry_later(0.0)
                return "handed-over"
            return await self._settle(at, call, INTERRUPTED, held, run.telling)
        if isinstance(ended, DeferredCall):
            return await self._hand(at, call, ended.until, held)
        return await self._settle(at, call, await run.recordable(ended), held, run.telling)

    async def read(self, at: Address) -> Session:
        """The session as it is now."""
        return await self._ledger.read(at)

    async def conclude(self, at: Address, call: UnsettledCall, outcome: Outcome) -> str:
        """Settle a call for somebody outside, as a run of it here would have been settled."""
        bounded = await self.retention.recordable(at, outcome, limits=self.retention.limits)
        return await self._settle(at, call, bounded, Held(Unheld()), None)

    async def _hand(self, at: Address, call: UnsettledCall, until: int, held: Held) -> str:
        """Leave the call to a queue. Its request stays, and looks again when the time is up."""

        async def decide(session: Session) -> tuple[tuple[SessionEvent, ...], bool]:
            events = defer(session, call, until)
            return events, bool(events)

        await self._ledger.commit(at, decide)
        await held.job.retry_later(max((until - now_ms()) / 1000, 0.0))
        return "deferred"

    async def _settle(
        self,
        at: Address,
        call: UnsettledCall,
        outcome: Outcome,
        held: Held,
        telling: CallProgress | None,
    ) -> str:
        try:
            session, settled = await self._settled(at, call, outcome, telling, held.begun)
        except (CommitTooLarge, ValueError) as error:
            log.warning("result unrecordable", extra=_ids(at, call.call_id), exc_info=error)
            outcome = tool_crash(f"the result cannot be recorded: {error_text(error)[:1000]}")
            session, settled = await self._settled(at, call, outcome, None, None)
        if session.profile is None:
            await self._erased(at)
        ids = {**_ids(at, call.call_id), "tool": call.tool}
        if not settled and find_call(session, call.assistant_message_id, call.call_id) is not None:
            # Another worker runs it now: the request is that worker's to acknowledge.
            log.warning("call lost", extra=ids)
            return "lost"
        await self._wake(at, session, held)
        end = _end(outcome) if settled else "late"
        log.info("call settled", extra={**ids, "end": end})
        return end

    async def _settled(
        self,
        at: Address,
        call: UnsettledCall,
        outcome: Outcome,
        telling: CallProgress | None,
        begun: AssumedState[Session] | None,
    ) -> tuple[Session, bool]:
        async def decide(session: Session) -> tuple[tuple[SessionEvent, ...], bool]:
            events = settle(session, call, outcome)
            # A success replaces what was told on the way; beside a failure it stays (E-28).
            failing = bool(events) and isinstance(outcome, Failed)
            before = telling.unwritten(session) if failing and telling else ()
            return (*before, *events), bool(events)

        assumed = None if begun is None else self._ledger.latest(at, begun)
        after, settled = await self._ledger.commit(at, decide, assumed=assumed)
        return after.state, settled

    async def _asked(self, at: Address, session: Session, held: Held) -> str:
        """Nobody is held up by a person: not this worker, and not the runner that waits for it."""
        if await self._ledger.lags(at, session):
            # Perhaps the answer is there, and this is the request that it brought.
            await held.job.retry_later(LAG_S)
            return "behind"
        if session.execution.owner is not None:
            await self._eventlog.liveness.nudge(session.execution.owner.runner, at)
        await held.job.ack()
        return "asked"

    async def _gone(self, at: Address, session: Session, request: ToolRequest, held: Held) -> str:
        """Nothing to do here. A redelivery may mean that a worker died before its wake: leave one.

        An interrupt may have found nobody who owns the session: somebody has to come.
        """
        if await self._ledger.lags(at, session):
            await held.job.retry_later(LAG_S)
            return "behind"
        if session.profile is None:
            await self._erased(at)
        if is_moving(session) and (session.execution.interrupted or held.job.deliveries > 1):
            await self._eventlog.wakes.wake(at)
        if self.abandon is not None and held.job.deliveries > 1:
            await self.abandon(at, request.assistant_message_id, request.call_id)
        await held.job.ack()
        return "gone"

    async def _wake(self, at: Address, session: Session, held: Held) -> None:
        """Tell whoever drains the session, or wake it if nobody does.

        Not after an interrupt that is over: a wake would start what it left pending.
        """
        if session.execution.owner is not None:
            await self._eventlog.liveness.nudge(session.execution.owner.runner, at)
        if is_moving(session):
            await self._eventlog.wakes.wake(at)
        await held.job.ack()


def _end(outcome: Outcome) -> str:
    if outcome == INTERRUPTED:
        return "interrupted"
    return "failed" if isinstance(outcome, Failed) else "succeeded"


def _ids(at: Address, call_id: str) -> dict[str, str]:
    return {"session_id": at.session_id, "call_id": call_id}
