"""The drain: ask the core for the next move, make it, write it down, until the session rests."""

import asyncio
import logging
from contextlib import suppress
from typing import Final, assert_never

from fairlead_eventlog.errors import CommitTooLarge, LogError
from fairlead_llm.errors import InvalidTransport
from fairlead_runner import tool_calls
from fairlead_runner.boundary import Boundary
from fairlead_runner.compactor import Compactor
from fairlead_runner.log_waiter import LogWaiter
from fairlead_runner.metrics import TURNS
from fairlead_runner.model_target import ModelNotConfigured, resolve_model
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.staged_writer import StagedWriter, StaleDecision
from fairlead_runner.subagents import count_below, stop_below
from fairlead_runner.turn import EventWriter, ProviderAttempt, TurnOutcome
from fairlead_runner.turn_metrics import observe
from fairlead_schema.events import ExecutionReleased, SessionEvent
from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import MessageId
from fairlead_service import ids
from fairlead_session.compaction.compaction import CompactionPlan
from fairlead_session.execution.ownership import Claim, ProcessLife, claim, owns, release
from fairlead_session.execution.recovery import (
    ask_to_continue,
    end_step,
    fail_unrecordable_turn,
    settle_attempt,
    stop_open_work,
)
from fairlead_session.execution.retry import Retry, keeps_backoff, retry_wait_s
from fairlead_session.next_move import (
    AwaitCalls,
    Compact,
    EndStep,
    InitialiseContext,
    Move,
    Rest,
    SettleInterrupted,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
    wake_has_work,
)
from fairlead_session.people.pending import waits_for_people
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import begin_epoch
from fairlead_session.turn.epoch import Blocked

log = logging.getLogger(__name__)

# How soon the projector is asked again what a tenant has used.
ASK_AGAIN_S: Final = 3.0


class Drain:
    """One span of work on one session."""

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        self._context = context
        self._writer = writer
        self._boundary = Boundary(context, writer)
        self._waiter = LogWaiter(writer)
        self._opening: MessageId | None = None
        self._requested: set[tuple[int, tool_calls.CallRequest]] = set()
        self._compactor = Compactor(context, writer, self._waiter.nudged)

    def shutdown(self) -> None:
        """Finish the turn under way, then hand the session over."""
        self._waiter.shutdown()

    def nudge(self) -> None:
        """Look at the log again: somebody wrote something for us."""
        self._waiter.nudged.set()

    async def run(self) -> bool:
        """Drain until nothing continues. False: a live runner owns the session. Raises OwnershipLost."""
        if self._too_early():
            return True
        try:
            while True:
                with suppress(StaleDecision):
                    if self._writer.session.execution.owner is None and not wake_has_work(
                        self._writer.session
                    ):
                        return True
                    if not await self._claimed():
                        return False
                    if await self._move():
                        return True
        except asyncio.CancelledError:
            await self._hand_over()
            raise

    def _too_early(self) -> bool:
        """A session that waits for its timer is left alone, unless there is something new."""
        return retry_wait_s(self._writer.session, now_ms=ids.now_ms()) > 0

    async def _claimed(self) -> bool:
        """Own the session, durably or as the first thing staged."""
        session = self._writer.session
        if owns(session, self._context.runner, session.execution.generation):
            return True
        decision = claim(session, self._context.runner, await self._life(session))
        if isinstance(decision, Claim):
            self._writer.stage(decision.event)
            return True
        return False

    async def _life(self, session: Session) -> ProcessLife | None:
        """What is known of another owner, asked anew each time: it may have come meanwhile."""
        owner = session.execution.owner
        if owner is None or owner.runner == self._context.runner:
            return None
        timeout_s = self._context.settings.config.runner.ping_timeout_s
        return await self._context.eventlog.liveness.ping(owner.runner, timeout_s=timeout_s)

    async def _hand_over(self) -> None:
        """Release what is ours before the process ends; what cannot be written is recovered."""
        writer = self._writer
        writer.unstage()
        if owns(writer.session, self._context.runner, writer.session.execution.generation):
            with suppress(StaleDecision, LogError):
                writer.stage(release(writer.session, "handover"))
                await writer.commit()

    async def let_go(self, reason: str) -> None:
        """Give up a session that fails for a reason of ours: settle what is open, say why, rest."""
        writer, runner = self._writer, self._context.runner
        await writer.reload()
        if writer.session.execution.owner is None and is_moving(writer.session):
            decision = claim(writer.session, runner, None)
            assert isinstance(decision, Claim), "nobody owns it"
            writer.stage(decision.event)
        if owns(writer.session, runner, writer.session.execution.generation):
            with suppress(StaleDecision):
                writer.stage(*stop_open_work(writer.session), self._release("failed", reason))
                await writer.commit()

    async def _move(self) -> bool:
        """Make one move; True when the session is at rest."""
        writer = self._writer
        move = await self._next()
        match move:
            case Rest(reason="budget-unknown", detail=detail):
                return await self._ask_later(detail)
            case Rest(reason=reason, detail=detail):
                return await self._rest(reason, detail)
            case Stop():
                await stop_below(self._context.eventlog, writer.at, writer.session)
                declined = writer.session.execution.declined
                writer.stage(*stop_open_work(writer.session))
                return await self._rest("declined" if declined else "interrupted", declined)
            case _ if self._waiter.leaving:
                return await self._rest("handover")
            case AwaitCalls():
                return await self._await_calls()
            case EndStep(attempt=attempt):
                writer.stage(end_step(attempt))
                return False
            case SettleInterrupted(attempt=attempt):
                log.warning("recovering", extra=self._ids(attempt_id=attempt.attempt_id))
                policy = self._context.settings.policy(writer.at.tenant, writer.session)
                writer.stage(*settle_attempt(writer.session, attempt, policy))
                if policy == "ask":
                    writer.stage(ask_to_continue(writer.session, ids.question_id()))
                return False
            case Compact():
                failed = await self._compactor.serve(move)
                return failed is not None and await self._close(failed)
            case InitialiseContext():
                return await self._initialise()
            case TakeTurn():
                return await self._turn(move)
            case _:
                assert_never(move)

    async def _next(self) -> Move:
        writer = self._writer
        writer.stage(*await count_below(self._context.sessions, writer.at, writer.session))
        session = writer.session
        spending = await self._context.spending(self._writer.at.tenant)
        limits = self._context.settings.limits(session, spending)
        return next_move(session, limits, opening=self._opening)

    async def _initialise(self) -> bool:
        events = begin_epoch(await self._boundary.sample())
        if isinstance(events, Blocked):
            log.warning("context blocked", extra=self._ids(keys=list(events.keys)))
            return await self._rest("context-unavailable", events.describe())
        self._writer.stage(*events)
        return False

    async def _await_calls(self) -> bool:
        """See that every call is on its way; wait a short while; then park.

        Nobody waits here for people: where only they can go on, the session parks at once.
        """
        writer, context = self._writer, self._context
        sent = tool_calls.unstarted_calls(writer.session)
        await self._request(sent)
        timeout_s = context.settings.config.runner.ping_timeout_s
        left = await tool_calls.orphaned_calls(
            context.eventlog, writer.session, timeout_s=timeout_s
        )
        await self._request(left)
        if writer.durable.execution.owner is None and writer.durable.execution.rested == "parked":
            writer.unstage()
            return True
        await writer.commit()
        if waits_for_people(writer.session):
            return await self._rest("parked")
        if await self._waiter.until(
            lambda session: _moved_on(session, sent),
            within_s=context.settings.config.runner.tools_wait_s,
        ):
            return False
        return await self._rest("parked")

    async def _turn(self, move: TakeTurn) -> bool:
        try:
            target = resolve_model(self._context.settings.config, self._writer.session)
            client = self._context.clients(target.transport)
        except (ModelNotConfigured, InvalidTransport) as error:
            log.warning(
                "provider not configured: session rests", extra=self._ids(reason=str(error))
            )
            return await self._rest("failed", str(error))
        # Should a steer come before the boundary is written, it follows the input that opens it.
        self._opening = move.inputs[0].message_id if move.inputs else None
        asked = await self._boundary.cross(move, target)
        if isinstance(asked, CompactionPlan):
            await self._compactor.compact(asked, "auto", target)
            return False
        dispatched = self._writer.durable.turn.attempt
        assert dispatched is not None, "the boundary was just committed"
        ratios = self._writer.durable.requests.token_ratios
        event_writer = self._event_writer(dispatched.generation)
        turn = ProviderAttempt(self._writer, dispatched, target, asked, event_writer)
        try:
            outcome = await turn.perform(
                client,
                self._context.eventlog.deltas,
                self._context.settings.retries,
                self._waiter.nudged,
            )
            TURNS.labels(outcome.end).inc()
            observe(dispatched, ratios, turn.finish, cached=self._boundary.cached)
            event_writer.check()
            return await self._conclude(outcome)
        except CommitTooLarge as error:
            # Asked again it would say as much again: the turn fails, and says why.
            log.warning("answer unrecordable", extra=self._ids(reason=str(error)))
            self._writer.unstage()
            event_writer.check()
            lost = fail_unrecordable_turn(self._writer.durable, str(error))
            return await self._close(TurnOutcome("failed", lost))

    async def _conclude(self, outcome: TurnOutcome) -> bool:
        if outcome.end == "overflowed":
            await self._event_writer(
                self._writer.durable.execution.generation
            ).append_until_written(outcome.events)
            return False
        if outcome.retry is not None:
            return await self._retry(outcome.retry)
        return await self._close(outcome)

    def _event_writer(self, generation: int) -> EventWriter:
        return EventWriter(self._writer, self._context.runner, generation, self._send)

    async def _send(self, events: tuple[SessionEvent, ...]) -> None:
        await self._request(tool_calls.local_calls(events))

    async def _request(self, calls: list[tool_calls.CallRequest]) -> None:
        context, writer = self._context, self._writer
        # A new owner asks anew: the first request may have been lost with its worker.
        generation = writer.session.execution.generation
        news = [call for call in calls if (generation, call) not in self._requested]
        known = writer.known if writer.session is writer.durable else None
        await tool_calls.send_calls(
            context.eventlog, writer.at, context.pool, news, token=str(generation), known=known
        )
        self._requested.update((generation, call) for call in news)

    async def _retry(self, retry: Retry) -> bool:
        """Tell the retry; wait for it here if it is short, else park until a timer rings."""
        writer, generation = self._writer, self._writer.durable.execution.generation
        await writer.append_until_written((retry.event,), self._context.runner, generation)
        if retry.delay_s <= self._context.settings.config.runner.park_after_s:
            await self._waiter.until(
                lambda session: session.execution.interrupted, within_s=retry.delay_s
            )
            return False
        wake_at = ids.now_ms() + int(retry.delay_s * 1000)
        await self._context.eventlog.timers.wake_at(writer.at, wake_at)
        runner = self._context.runner
        while owns(writer.session, runner, generation) and keeps_backoff(writer.session):
            with suppress(StaleDecision):  # What came meanwhile may wait as long as the turn does.
                return await self._rest("retry-later", retry.event.error.message, wake_at)
        return False

    async def _ask_later(self, detail: str | None) -> bool:
        """Rest until a timer rings, and look again then, as often as it takes."""
        wake_at = ids.now_ms() + int(ASK_AGAIN_S * 1000)
        await self._context.eventlog.timers.wake_at(self._writer.at, wake_at)
        return await self._rest("budget-unknown", detail, wake_at)

    async def _close(self, outcome: TurnOutcome) -> bool:
        """Write how the turn ended; if the session would then rest, rest in the same commit."""
        writer, generation = self._writer, self._writer.durable.execution.generation
        writer.stage(*outcome.events)
        move = await self._next()
        rest = move if isinstance(move, Rest) and move.reason != "budget-unknown" else None
        try:
            if rest is not None:
                writer.stage(self._release(rest.reason, rest.detail))
            await writer.commit()
        except (StaleDecision, CommitTooLarge):
            writer.unstage()
            await self._event_writer(generation).append_until_written(outcome.events)
            return False
        await self._send(outcome.events)
        return rest is not None

    async def _rest(
        self, reason: RestReason, detail: str | None = None, wake_at: int | None = None
    ) -> bool:
        """Release what is durably ours; a claim that was never written needs no release."""
        writer = self._writer
        if not owns(writer.session, self._context.runner, writer.session.execution.generation):
            raise StaleDecision  # While we waited, the session passed to somebody else.
        untouched = writer.durable.execution.owner is None and writer.durable.turn.attempt is None
        if untouched and reason in {"idle", writer.durable.execution.rested}:
            writer.unstage()
            return True
        writer.stage(self._release(reason, detail, wake_at))
        await writer.commit()
        return True

    def _release(
        self, reason: RestReason, detail: str | None, wake_at: int | None = None
    ) -> ExecutionReleased:
        return release(self._writer.session, reason, detail=detail, wake_at=wake_at)

    def _ids(self, **more: object) -> dict[str, object]:
        return {"session_id": self._writer.at.session_id, **more}


def _moved_on(session: Session, sent: list[tool_calls.CallRequest]) -> bool:
    """Whether the next move is another: all settled, stopped, left to people, or answered by one."""
    if not session.calls or session.execution.interrupted or waits_for_people(session):
        return True
    return any(call not in sent for call in tool_calls.unstarted_calls(session))
