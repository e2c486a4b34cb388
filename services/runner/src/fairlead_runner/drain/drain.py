"""The drain: ask the core for the next move, make it, and repeat until the session rests."""

import asyncio
import logging
from contextlib import suppress
from typing import assert_never

from fairlead_eventlog.process_life import Nudge
from fairlead_runner.drain.call_wait import CallWait
from fairlead_runner.drain.drain_context import open_drain
from fairlead_runner.drain.move_server import MoveServer
from fairlead_runner.drain.revert_server import RevertServer
from fairlead_runner.drain.staged_writer import StagedWriter, StaleDecision
from fairlead_runner.metrics import RECOVERIES
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.subagents import interrupt_children
from fairlead_runner.turn.boundary import Boundary
from fairlead_runner.turn.compactor import Compactor
from fairlead_runner.turn.conclusion import TurnConclusion
from fairlead_runner.turn.turn_runner import TurnRunner
from fairlead_service import ids
from fairlead_session.execution.recovery import settle_attempt, stop_open_work
from fairlead_session.execution.rest import rest_rule, stop_reason
from fairlead_session.execution.retry import retry_wait_s
from fairlead_session.input.pending_shells import drop_shells, start_shells
from fairlead_session.next_move import (
    AwaitCalls,
    CommitRevert,
    Compact,
    EndStep,
    InitialiseContext,
    Move,
    Rest,
    ServeMove,
    ServeRevert,
    SettleInterrupted,
    StartShells,
    Stop,
    TakeTurn,
    wake_has_work,
)
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.boundary import begin_epoch
from fairlead_session.turn.epoch import Blocked
from fairlead_session.turn.step_end import end_step

log = logging.getLogger(__name__)


class Drain:
    """One span of work on one session."""

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        parts = open_drain(context, writer)
        self._parts = parts
        self._context = context
        self._writer = writer
        self._ownership = parts.ownership
        self._call_wait = CallWait(parts)
        self._boundary = Boundary(context, writer, parts.waiter.nudged)
        self._compactor = Compactor(context, writer, parts.waiter.nudged)
        self._conclusion = TurnConclusion(parts)
        self._reverts = RevertServer(parts)
        self._moves = MoveServer(parts)
        self._turns = TurnRunner(parts, self._boundary, self._compactor, self._conclusion)

    def shutdown(self) -> None:
        """Finish the current turn, then hand the session over."""
        self._parts.waiter.shutdown()

    def nudge(self, nudge: Nudge) -> None:
        """Look at the log again: another writer has news for this drain."""
        self._writer.expect(nudge)
        self._parts.waiter.nudged.set()

    async def give_up(self, reason: str) -> None:
        """Settle what is open and rest as failed, because this runner cannot go on."""
        await self._ownership.give_up(reason)

    async def run(self) -> bool:
        """Drain until nothing continues. False: a live runner owns the session.

        A session that waits for its timer is left alone. Raises OwnershipLost.
        """
        if retry_wait_s(self._writer.session, now_ms=ids.now_ms()) > 0:
            return True
        try:
            while True:
                with suppress(StaleDecision):
                    if not self._has_work():
                        return True
                    if not await self._ownership.claim():
                        return False
                    if await self._make(await self._parts.planner.next_move()):
                        return True
        except asyncio.CancelledError:
            await self._ownership.hand_over()
            raise

    def _has_work(self) -> bool:
        session = self._writer.session
        if session.is_incomplete:
            return False
        return session.execution.owner is not None or wake_has_work(session)

    async def _make(self, move: Move) -> bool:
        """Make one move. True: the session rests."""
        match move:
            case Rest():
                return await self._rest(move)
            case Stop():
                return await self._stop()
            case _ if self._parts.waiter.shutting_down:
                return await self._ownership.rest("handover")
            case AwaitCalls():
                return await self._call_wait.run()
            case StartShells(shells=shells):
                self._writer.stage(*start_shells(shells))
                # A worker finds the call only in the log.
                await self._writer.commit()
                return False
            case EndStep(attempt=attempt):
                files = await self._context.file_snapshots.end_step(
                    self._writer.at, self._writer.session, attempt
                )
                self._writer.stage(*end_step(attempt, files))
                return False
            case ServeRevert() | CommitRevert() | ServeMove():
                return await self._change_files(move)
            case SettleInterrupted(attempt=attempt):
                self._recover(attempt)
                return False
            case Compact():
                failure = await self._compactor.serve(move)
                return failure is not None and await self._conclusion.end_turn(failure)
            case InitialiseContext():
                return await self._begin_epoch()
            case TakeTurn():
                return await self._turns.take(move)
            case _:
                assert_never(move)

    async def _change_files(self, move: ServeRevert | CommitRevert | ServeMove) -> bool:
        if isinstance(move, ServeMove):
            return await self._moves.serve()
        return await self._reverts.make(move)

    async def _rest(self, move: Rest) -> bool:
        """Rest. If something is not known now, a timer wakes the session to check again."""
        if rest_rule(move.reason).timer != "recheck":
            return await self._ownership.rest(move.reason, move.detail)
        delay_s = self._context.settings.timings.usage_retry_s
        wake_at = ids.now_ms() + int(delay_s * 1000)
        await self._context.eventlog.timers.wake_at(self._writer.at, wake_at)
        return await self._ownership.rest(move.reason, move.detail, wake_at=wake_at)

    async def _stop(self) -> bool:
        """Interrupt the sub-agents, settle what is open, and rest."""
        writer = self._writer
        await interrupt_children(self._context.eventlog, writer.at, writer.session)
        declined = writer.session.execution.declined
        writer.stage(*drop_shells(writer.session), *stop_open_work(writer.session))
        return await self._ownership.rest(stop_reason(declined), declined)

    def _recover(self, attempt: Attempt) -> None:
        """Settle the attempt of a dead owner, as the recovery policy says."""
        writer = self._writer
        policy = self._context.settings.recovery_policy(writer.at.tenant, writer.session)
        extra = self._parts.log_fields(attempt_id=attempt.attempt_id, policy=policy)
        RECOVERIES.labels(policy).inc()
        log.warning("turn of a dead runner found: the turn is recovered", extra=extra)
        writer.stage(*settle_attempt(writer.session, attempt, policy, ids.question_id()))

    async def _begin_epoch(self) -> bool:
        events = begin_epoch(await self._boundary.observe())
        if isinstance(events, Blocked):
            extra = self._parts.log_fields(keys=list(events.keys))
            log.warning("context source unavailable: session rests", extra=extra)
            return await self._ownership.rest("context-unavailable", events.describe())
        self._writer.stage(*events)
        return False
