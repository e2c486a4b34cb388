"""The drain: ask the core for the next move, make it, write it down, until the session rests."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

import httpx

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.folded import Folded
from fairlead_runner import context
from fairlead_runner.ledger import Ledger, Moved
from fairlead_runner.metrics import TURNS
from fairlead_runner.settings import Settings
from fairlead_runner.turn import Outcome, perform
from fairlead_runner.voices import NoVoice, Speaker, speaker
from fairlead_schema.context import ContextSample
from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import RunnerId
from fairlead_service import ids
from fairlead_session.boundary import TurnIds, begin_epoch, cross, dispatch
from fairlead_session.drain import (
    InitialiseContext,
    Rest,
    SettleInterrupted,
    TakeTurn,
    next_move,
)
from fairlead_session.epoch import Blocked
from fairlead_session.ownership import Claim, Life, claim, owns, release
from fairlead_session.settlement import settle
from fairlead_session.state import Session

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tackle:
    """What every drain of one runner shares."""

    runner: RunnerId
    eventlog: EventLog
    folded: Folded[Session]
    client: httpx.AsyncClient
    settings: Settings


class Drain:
    """One span of work on one session."""

    def __init__(self, tackle: Tackle, ledger: Ledger) -> None:
        self._tackle = tackle
        self._ledger = ledger
        self._sample: ContextSample | None = None
        self.leaving = False

    async def run(self) -> bool:
        """Drain until nothing continues. False: a live runner owns the session. Raises Fenced."""
        try:
            while True:
                with suppress(Moved):
                    if not await self._claimed():
                        return False
                    if await self._move():
                        return True
        except asyncio.CancelledError:
            await self._hand_over()
            raise

    async def _claimed(self) -> bool:
        """Own the session, durably or as the first thing staged."""
        session = self._ledger.session
        if owns(session, self._tackle.runner, session.generation):
            return True
        decision = claim(session, self._tackle.runner, await self._life(session))
        if isinstance(decision, Claim):
            self._ledger.stage(decision.event)
            return True
        return False

    async def _life(self, session: Session) -> Life | None:
        """What is known of another owner, asked anew each time: it may have come meanwhile."""
        owner = session.owner
        if owner is None or owner.runner == self._tackle.runner:
            return None
        timeout_s = self._tackle.settings.config.runner.ping_timeout_s
        return await self._tackle.eventlog.liveness.ask(owner.runner, timeout_s=timeout_s)

    async def _hand_over(self) -> None:
        """Release what is ours before the process ends; what cannot be written is recovered."""
        ledger = self._ledger
        ledger.unstage()
        if owns(ledger.session, self._tackle.runner, ledger.session.generation):
            with suppress(Moved, LogError):
                ledger.stage(release(ledger.session, "handover"))
                await ledger.commit()

    async def _move(self) -> bool:
        """Make one move; True when the session is at rest."""
        ledger = self._ledger
        move = next_move(ledger.session, self._tackle.settings.limits)
        match move:
            case Rest(reason=reason):
                return await self._rest(reason)
            case _ if self.leaving:
                return await self._rest("handover")
            case SettleInterrupted(attempt=attempt):
                log.warning("recovering", extra=self._ids(attempt_id=attempt.attempt_id))
                ledger.stage(*settle(ledger.session, attempt))
                return False
            case InitialiseContext():
                return await self._initialise()
            case TakeTurn():
                return await self._turn(move)
            case _:
                assert_never(move)

    async def _initialise(self) -> bool:
        events = begin_epoch(await self._observed())
        if isinstance(events, Blocked):
            log.warning("context blocked", extra=self._ids(keys=list(events.keys)))
            return await self._rest("context-unavailable")
        self._ledger.stage(*events)
        return False

    async def _turn(self, move: TakeTurn) -> bool:
        try:
            speaking = speaker(self._tackle.settings.config, self._ledger.session)
        except NoVoice as error:
            log.warning("no voice", extra=self._ids(reason=str(error)))
            return await self._rest("failed")
        sample, self._sample = await self._observed(), None
        outcome = await self._performed(move, speaking, sample)
        TURNS.labels(outcome.end).inc()
        return await self._close(outcome)

    async def _performed(self, move: TakeTurn, speaking: Speaker, sample: ContextSample) -> Outcome:
        """Cross the boundary in one commit, then call: what was not written never happened."""
        ledger = self._ledger
        minted = TurnIds(ids.attempt_id(), ids.message_id(), ids.message_id())
        attempt = dispatch(minted, agent=speaking.agent, model=speaking.voice.model, step=move.step)
        ledger.stage(*cross(ledger.session, move.inputs, sample, attempt, minted))
        await ledger.commit()
        dispatched = ledger.durable.attempt
        assert dispatched is not None, "the boundary was just committed"
        return await perform(
            ledger,
            dispatched,
            speaking,
            client=self._tackle.client,
            deltas=self._tackle.eventlog.deltas,
            runner=self._tackle.runner,
        )

    async def _close(self, outcome: Outcome) -> bool:
        """Write how the turn ended; if the session would then rest, rest in the same commit."""
        ledger, generation = self._ledger, self._ledger.durable.generation
        ledger.stage(*outcome.events)
        move = next_move(ledger.session, self._tackle.settings.limits)
        reason: RestReason | None = "failed" if outcome.end == "failed" else None
        if isinstance(move, Rest):
            reason = reason or move.reason
        try:
            if reason is not None:
                ledger.stage(release(ledger.session, reason))
            await ledger.commit()
        except Moved:
            await ledger.insist(outcome.events, self._tackle.runner, generation)
            return False
        return reason is not None

    async def _rest(self, reason: RestReason) -> bool:
        """Release what is durably ours; a claim that was never written needs no release."""
        ledger = self._ledger
        held = ledger.durable.owner
        if held is None and not ledger.durable.attempt and reason == "idle":
            ledger.unstage()
            return True
        ledger.stage(release(ledger.session, reason))
        await ledger.commit()
        return True

    async def _observed(self) -> ContextSample:
        """One sample per boundary, however many moves it takes to get there."""
        if self._sample is None:
            runner = self._tackle.settings.config.runner
            self._sample = await context.sample(
                self._tackle.eventlog,
                self._ledger.session,
                pool=self._tackle.settings.config.tools.pool,
                timeout_s=runner.observe_timeout_s,
            )
        return self._sample

    def _ids(self, **more: object) -> dict[str, object]:
        return {"session_id": self._ledger.at.session_id, **more}
