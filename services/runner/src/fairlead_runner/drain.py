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
from fairlead_runner.model_target import NoVoice, speaker
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.staged_writer import Moved, StagedWriter
from fairlead_runner.subagents import count_below, stop_below
from fairlead_runner.turn import Facts, Outcome, Turn
from fairlead_runner.turn_metrics import observe
from fairlead_schema.events import ExecutionReleased, SessionEvent
from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import MessageId
from fairlead_service import ids
from fairlead_session.compaction.compaction import CompactionPlan
from fairlead_session.execution.ownership import Claim, Life, claim, owns, release
from fairlead_session.execution.recovery import ask, end, settle, stop, unrecordable
from fairlead_session.execution.retry import Retry, patient, waits_s
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
    called_for,
    moving,
    next_move,
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

    def __init__(self, tackle: RunnerContext, ledger: StagedWriter) -> None:
        self._tackle = tackle
        self._ledger = ledger
        self._boundary = Boundary(tackle, ledger)
        self._patience = LogWaiter(ledger)
        self._opening: MessageId | None = None
        self._requested: set[tuple[int, tool_calls.Wanted]] = set()
        self._compactor = Compactor(tackle, ledger, self._patience.nudged)

    def leave(self) -> None:
        """Finish the turn under way, then hand the session over."""
        self._patience.leave()

    def nudge(self) -> None:
        """Look at the log again: somebody wrote something for us."""
        self._patience.nudged.set()

    async def run(self) -> bool:
        """Drain until nothing continues. False: a live runner owns the session. Raises Fenced."""
        if self._too_early():
            return True
        try:
            while True:
                with suppress(Moved):
                    if self._ledger.session.execution.owner is None and not called_for(
                        self._ledger.session
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
        return waits_s(self._ledger.session, now_ms=ids.now_ms()) > 0

    async def _claimed(self) -> bool:
        """Own the session, durably or as the first thing staged."""
        session = self._ledger.session
        if owns(session, self._tackle.runner, session.execution.generation):
            return True
        decision = claim(session, self._tackle.runner, await self._life(session))
        if isinstance(decision, Claim):
            self._ledger.stage(decision.event)
            return True
        return False

    async def _life(self, session: Session) -> Life | None:
        """What is known of another owner, asked anew each time: it may have come meanwhile."""
        owner = session.execution.owner
        if owner is None or owner.runner == self._tackle.runner:
            return None
        timeout_s = self._tackle.settings.config.runner.ping_timeout_s
        return await self._tackle.eventlog.liveness.ping(owner.runner, timeout_s=timeout_s)

    async def _hand_over(self) -> None:
        """Release what is ours before the process ends; what cannot be written is recovered."""
        ledger = self._ledger
        ledger.unstage()
        if owns(ledger.session, self._tackle.runner, ledger.session.execution.generation):
            with suppress(Moved, LogError):
                ledger.stage(release(ledger.session, "handover"))
                await ledger.commit()

    async def let_go(self, reason: str) -> None:
        """Give up a session that fails for a reason of ours: settle what is open, say why, rest."""
        ledger, runner = self._ledger, self._tackle.runner
        await ledger.reload()
        if ledger.session.execution.owner is None and moving(ledger.session):
            decision = claim(ledger.session, runner, None)
            assert isinstance(decision, Claim), "nobody owns it"
            ledger.stage(decision.event)
        if owns(ledger.session, runner, ledger.session.execution.generation):
            with suppress(Moved):
                ledger.stage(*stop(ledger.session), self._release("failed", reason))
                await ledger.commit()

    async def _move(self) -> bool:
        """Make one move; True when the session is at rest."""
        ledger = self._ledger
        move = await self._next()
        match move:
            case Rest(reason="budget-unknown", detail=detail):
                return await self._ask_later(detail)
            case Rest(reason=reason, detail=detail):
                return await self._rest(reason, detail)
            case Stop():
                await stop_below(self._tackle.eventlog, ledger.at, ledger.session)
                declined = ledger.session.execution.declined
                ledger.stage(*stop(ledger.session))
                return await self._rest("declined" if declined else "interrupted", declined)
            case _ if self._patience.leaving:
                return await self._rest("handover")
            case AwaitCalls():
                return await self._await_calls()
            case EndStep(attempt=attempt):
                ledger.stage(end(attempt))
                return False
            case SettleInterrupted(attempt=attempt):
                log.warning("recovering", extra=self._ids(attempt_id=attempt.attempt_id))
                policy = self._tackle.settings.policy(ledger.at.tenant, ledger.session)
                ledger.stage(*settle(ledger.session, attempt, policy))
                if policy == "ask":
                    ledger.stage(ask(ledger.session, ids.question_id()))
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
        ledger = self._ledger
        ledger.stage(*await count_below(self._tackle.folded, ledger.at, ledger.session))
        session = ledger.session
        spending = await self._tackle.spending(self._ledger.at.tenant)
        limits = self._tackle.settings.limits(session, spending)
        return next_move(session, limits, opening=self._opening)

    async def _initialise(self) -> bool:
        events = begin_epoch(await self._boundary.sample())
        if isinstance(events, Blocked):
            log.warning("context blocked", extra=self._ids(keys=list(events.keys)))
            return await self._rest("context-unavailable", events.told())
        self._ledger.stage(*events)
        return False

    async def _await_calls(self) -> bool:
        """See that every call is on its way; wait a short while; then park.

        Nobody waits here for people: where only they can go on, the session parks at once.
        """
        ledger, tackle = self._ledger, self._tackle
        sent = tool_calls.not_started(ledger.session)
        await self._request(sent)
        timeout_s = tackle.settings.config.runner.ping_timeout_s
        left = await tool_calls.forsaken(tackle.eventlog, ledger.session, timeout_s=timeout_s)
        await self._request(left)
        if ledger.durable.execution.owner is None and ledger.durable.execution.rested == "parked":
            ledger.unstage()
            return True
        await ledger.commit()
        if waits_for_people(ledger.session):
            return await self._rest("parked")
        if await self._patience.until(
            lambda session: _moved_on(session, sent),
            within_s=tackle.settings.config.runner.tools_wait_s,
        ):
            return False
        return await self._rest("parked")

    async def _turn(self, move: TakeTurn) -> bool:
        try:
            speaking = speaker(self._tackle.settings.config, self._ledger.session)
            client = self._tackle.clients(speaking.transport)
        except (NoVoice, InvalidTransport) as error:
            log.warning("no voice", extra=self._ids(reason=str(error)))
            return await self._rest("failed", str(error))
        # Should a steer come before the boundary is written, it follows the input that opens it.
        self._opening = move.inputs[0].message_id if move.inputs else None
        asked = await self._boundary.cross(move, speaking)
        if isinstance(asked, CompactionPlan):
            await self._compactor.perform(asked, "auto", speaking)
            return False
        dispatched = self._ledger.durable.turn.attempt
        assert dispatched is not None, "the boundary was just committed"
        ratios = self._ledger.durable.requests.token_ratios
        facts = self._facts(dispatched.generation)
        turn = Turn(self._ledger, dispatched, speaking, asked, facts)
        try:
            outcome = await turn.perform(
                client,
                self._tackle.eventlog.deltas,
                self._tackle.settings.retries,
                self._patience.nudged,
            )
            TURNS.labels(outcome.end).inc()
            observe(dispatched, ratios, turn.finish, cached=self._boundary.cached)
            facts.check()
            return await self._conclude(outcome)
        except CommitTooLarge as error:
            # Asked again it would say as much again: the turn fails, and says why.
            log.warning("answer unrecordable", extra=self._ids(reason=str(error)))
            self._ledger.unstage()
            facts.check()
            lost = unrecordable(self._ledger.durable, str(error))
            return await self._close(Outcome("failed", lost))

    async def _conclude(self, outcome: Outcome) -> bool:
        if outcome.end == "overflowed":
            await self._facts(self._ledger.durable.execution.generation).append_until_written(
                outcome.events
            )
            return False
        if outcome.retry is not None:
            return await self._retry(outcome.retry)
        return await self._close(outcome)

    def _facts(self, generation: int) -> Facts:
        return Facts(self._ledger, self._tackle.runner, generation, self._send)

    async def _send(self, events: tuple[SessionEvent, ...]) -> None:
        await self._request(tool_calls.to_send(events))

    async def _request(self, calls: list[tool_calls.Wanted]) -> None:
        tackle, ledger = self._tackle, self._ledger
        # A new owner asks anew: the first request may have been lost with its worker.
        generation = ledger.session.execution.generation
        news = [wanted for wanted in calls if (generation, wanted) not in self._requested]
        known = ledger.known if ledger.session is ledger.durable else None
        await tool_calls.send(
            tackle.eventlog, ledger.at, tackle.pool, news, token=str(generation), known=known
        )
        self._requested.update((generation, wanted) for wanted in news)

    async def _retry(self, retry: Retry) -> bool:
        """Tell the retry; wait for it here if it is short, else park until a timer rings."""
        ledger, generation = self._ledger, self._ledger.durable.execution.generation
        await ledger.append_until_written((retry.event,), self._tackle.runner, generation)
        if retry.delay_s <= self._tackle.settings.config.runner.park_after_s:
            await self._patience.until(
                lambda session: session.execution.interrupted, within_s=retry.delay_s
            )
            return False
        wake_at = ids.now_ms() + int(retry.delay_s * 1000)
        await self._tackle.eventlog.timers.wake_at(ledger.at, wake_at)
        runner = self._tackle.runner
        while owns(ledger.session, runner, generation) and patient(ledger.session):
            with suppress(Moved):  # What came meanwhile may wait as long as the turn does.
                return await self._rest("retry-later", retry.event.error.message, wake_at)
        return False

    async def _ask_later(self, detail: str | None) -> bool:
        """Rest until a timer rings, and look again then, as often as it takes."""
        wake_at = ids.now_ms() + int(ASK_AGAIN_S * 1000)
        await self._tackle.eventlog.timers.wake_at(self._ledger.at, wake_at)
        return await self._rest("budget-unknown", detail, wake_at)

    async def _close(self, outcome: Outcome) -> bool:
        """Write how the turn ended; if the session would then rest, rest in the same commit."""
        ledger, generation = self._ledger, self._ledger.durable.execution.generation
        ledger.stage(*outcome.events)
        move = await self._next()
        rest = move if isinstance(move, Rest) and move.reason != "budget-unknown" else None
        try:
            if rest is not None:
                ledger.stage(self._release(rest.reason, rest.detail))
            await ledger.commit()
        except (Moved, CommitTooLarge):
            ledger.unstage()
            await self._facts(generation).append_until_written(outcome.events)
            return False
        await self._send(outcome.events)
        return rest is not None

    async def _rest(
        self, reason: RestReason, detail: str | None = None, wake_at: int | None = None
    ) -> bool:
        """Release what is durably ours; a claim that was never written needs no release."""
        ledger = self._ledger
        if not owns(ledger.session, self._tackle.runner, ledger.session.execution.generation):
            raise Moved  # While we waited, the session passed to somebody else.
        untouched = ledger.durable.execution.owner is None and ledger.durable.turn.attempt is None
        if untouched and reason in {"idle", ledger.durable.execution.rested}:
            ledger.unstage()
            return True
        ledger.stage(self._release(reason, detail, wake_at))
        await ledger.commit()
        return True

    def _release(
        self, reason: RestReason, detail: str | None, wake_at: int | None = None
    ) -> ExecutionReleased:
        told = release(self._ledger.session, reason)
        return told.model_copy(update={"detail": detail, "wake_at": wake_at})

    def _ids(self, **more: object) -> dict[str, object]:
        return {"session_id": self._ledger.at.session_id, **more}


def _moved_on(session: Session, sent: list[tool_calls.Wanted]) -> bool:
    """Whether the next move is another: all settled, stopped, left to people, or answered by one."""
    if not session.calls or session.execution.interrupted or waits_for_people(session):
        return True
    return any(wanted not in sent for wanted in tool_calls.not_started(session))
