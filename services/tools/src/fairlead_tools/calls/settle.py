"""The last phase of a call: the worker writes its end, wakes its session, ends its request."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Final, assert_never

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_eventlog.session_writer import AssumedState
from fairlead_schema.events import SessionEvent
from fairlead_schema.subjects import Address
from fairlead_service.ids import now_ms
from fairlead_session.calls.lifecycle import (
    INTERRUPTED,
    Failed,
    NotOpen,
    Outcome,
    ProgressReport,
    defer,
    first_deadline,
    give_back,
    settle,
)
from fairlead_session.fold.calls import find_call
from fairlead_session.next_move import is_moving
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.decision import (
    AnsweredElsewhere,
    LeftToOthers,
    SettledAtOnce,
    WaitsForAnswer,
    WaitsForQuota,
)
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.request import Handled, LeaveInQueue, PutBack, TakenRequest
from fairlead_tools.calls.run import RunResult
from fairlead_tools.calls.subagents import Subagents
from fairlead_tools.calls.tool_run import Stopped
from fairlead_tools.private_directory import PrivateDirectory
from fairlead_tools.registry.outcome import error_text, tool_crash
from fairlead_tools.registry.tool import Deferred

log = logging.getLogger(__name__)

REASON_LENGTH_MAX: Final = 1000
# A runner whose clock is late must find the deadline passed.
DEADLINE_MARGIN_MS: Final = 1000


class SettlePhase:
    """Ends calls for one worker, and says what becomes of their requests."""

    def __init__(
        self,
        eventlog: EventLog,
        call_log: CallLog,
        subagents: Subagents,
        private: PrivateDirectory,
    ) -> None:
        self._eventlog = eventlog
        self._log = call_log
        self._subagents = subagents
        self._private = private

    async def settle_run(
        self, at: Address, call: UnsettledCall, result: RunResult, after: AssumedState[Session]
    ) -> Handled:
        """Write how a run ended. `after` is the session after the commit that began the call."""
        end = result.end
        if isinstance(end, Deferred):
            return await self._defer(at, call, end.until)
        if isinstance(end, Stopped):
            log.info("call stopped", extra={**_ids(at, call), "why": end.why})
            if end.why == "leaving" and call.retry != "once":
                return await self._hand_over(at, call)
            end = INTERRUPTED
        return await self.settle(at, call, end, unwritten=result.unwritten, after=after)

    async def settle(
        self,
        at: Address,
        call: UnsettledCall,
        outcome: Outcome,
        *,
        unwritten: ProgressReport | None = None,
        after: AssumedState[Session] | None = None,
    ) -> Handled:
        """Write the settlement, unless another worker or an interrupt was first; then wake."""
        decide = partial(_decide_settlement, call, outcome, unwritten)
        assumed = None if after is None else self._log.latest(at, after)
        try:
            written = await self._log.commit(at, decide, assumed=assumed)
        except (CommitTooLarge, ValueError) as error:
            extra = _ids(at, call)
            log.warning("result cannot be recorded: the call fails", extra=extra, exc_info=error)
            reason = error_text(error)[:REASON_LENGTH_MAX]
            outcome = tool_crash(f"the result cannot be recorded: {reason}")
            written = await self._log.commit(at, partial(_decide_settlement, call, outcome, None))
        session, is_settled = written.after.state, written.value
        if session.profile is None:
            await self.remove_outputs(at)
        is_open = find_call(session, call.assistant_message_id, call.call_id) is not None
        if is_open and not is_settled:
            log.warning("call lost: another worker runs it", extra=_ids(at, call))
            return Handled("lost", LeaveInQueue())
        await self._arm_deadline(at, session)
        await self._wake(at, written.after)
        end = _end(outcome) if is_settled else "late"
        log.info("call settled", extra={**_ids(at, call), "end": end})
        return Handled(end)

    async def finish(
        self,
        request: TakenRequest,
        after: AssumedState[Session],
        begun: WaitsForAnswer
        | WaitsForQuota
        | LeftToOthers
        | AnsweredElsewhere
        | SettledAtOnce
        | NotOpen,
    ) -> Handled:
        """End the request of a call that does not run now. `after` is the session as it is known now."""
        session = after.state
        match begun:
            case WaitsForAnswer():
                return await self._finish_asked(request, after)
            case LeftToOthers(delay_s=delay_s):
                return Handled("left", PutBack(delay_s))
            case WaitsForQuota(wait=wait):
                if request.deliveries == 1:
                    ids = {"session_id": request.at.session_id, "tenant": request.at.tenant}
                    reason = {"reason": wait.reached.sentence}
                    log.info("quota of calls reached: the request comes again", extra=ids | reason)
                return Handled("over-quota", PutBack(wait.delay_s))
            case AnsweredElsewhere():
                await self._arm_deadline(request.at, session)
                return Handled("answered-elsewhere")
            case SettledAtOnce(end=end):
                ids = {"session_id": request.at.session_id, "call_id": request.call_id}
                log.info("call settled at once", extra={**ids, "end": end})
                await self._arm_deadline(request.at, session)
                await self._wake(request.at, after)
                return Handled(end)
            case NotOpen():
                return await self._finish_not_open(request, session)
            case _:
                assert_never(begun)

    async def remove_outputs(self, at: Address) -> None:
        """Leave nothing of a purged session: an output may have been stored after the purge."""
        with suppress(LogError):
            await self._eventlog.outputs.remove_all(at)
            await self._eventlog.attachments.remove_all(at)
        await asyncio.to_thread(self._private.remove_session, at)

    async def _finish_asked(self, request: TakenRequest, after: AssumedState[Session]) -> Handled:
        """Drop the request, and tell the owner: nobody waits for a person. The answer requests anew."""
        await self._nudge_owner(request.at, after)
        return Handled("asked")

    async def _finish_not_open(self, request: TakenRequest, session: Session) -> Handled:
        """Drop the request of a call that is settled, interrupted or unknown.

        A repeated delivery may mean that a worker died between its settlement and its wake, or that
        it left a sub-agent at work. An interrupted session may have no owner that settles its calls.
        """
        at = request.at
        if session.profile is None:
            await self.remove_outputs(at)
        is_repeated = request.deliveries > 1
        if is_moving(session) and (session.execution.interrupted or is_repeated):
            await self._eventlog.wakes.wake(at, position=self._log.seen_position(at))
        if is_repeated:
            await self._subagents.stop_child(at, request.assistant_message_id, request.call_id)
        return Handled("gone")

    async def _hand_over(self, at: Address, call: UnsettledCall) -> Handled:
        """Put the request back, and write that this worker did not die of the call."""
        with suppress(LogError):
            await self._log.commit(at, partial(_decide_return, call))
        return Handled("handed-over", PutBack())

    async def _defer(self, at: Address, call: UnsettledCall, until: int) -> Handled:
        """Write that a service has the call in its queue. A timer brings a request at the deadline."""
        written = await self._log.commit(at, partial(_decide_deferral, call, until))
        await self._arm_deadline(at, written.after.state)
        return Handled("deferred")

    async def _arm_deadline(self, at: Address, session: Session) -> None:
        """Set the session's timer to the first deadline of a call that a service has in its queue.

        Without it the sweep would find the late call. A session with open calls has no other timer.
        """
        deadline = first_deadline(session)
        if deadline is not None:
            await self._eventlog.timers.wake_at(at, max(deadline, now_ms()) + DEADLINE_MARGIN_MS)

    async def _wake(self, at: Address, after: AssumedState[Session]) -> None:
        """Tell the owner of the session, and wake the session if it has work.

        A session that an interrupt brought to rest gets no wake, which would start pending input.
        """
        await self._nudge_owner(at, after)
        if is_moving(after.state):
            await self._eventlog.wakes.wake(at, position=self._log.seen_position(at))

    async def _nudge_owner(self, at: Address, after: AssumedState[Session]) -> None:
        """Tell the owner how far the log has come, with the commit that says so if it is the last."""
        owner, position = after.state.execution.owner, self._log.seen_position(at)
        if owner is None:
            return
        commit = after.versioned.encode_last() if after.head.position == position else None
        await self._eventlog.liveness.nudge(owner.runner, at, position=position, commit=commit)


async def _decide_settlement(
    call: UnsettledCall, outcome: Outcome, unwritten: ProgressReport | None, session: Session
) -> tuple[tuple[SessionEvent, ...], bool]:
    """The settlement, and whether it counts."""
    events = settle(session, call, outcome, unwritten)
    return events, bool(events)


async def _decide_return(
    call: UnsettledCall, session: Session
) -> tuple[tuple[SessionEvent, ...], None]:
    return give_back(session, call), None


async def _decide_deferral(
    call: UnsettledCall, until: int, session: Session
) -> tuple[tuple[SessionEvent, ...], None]:
    return defer(session, call, until), None


def _end(outcome: Outcome) -> str:
    if outcome == INTERRUPTED:
        return "interrupted"
    return "failed" if isinstance(outcome, Failed) else "succeeded"


def _ids(at: Address, call: UnsettledCall) -> dict[str, str]:
    return {"session_id": at.session_id, "call_id": call.call_id, "tool": call.tool}
