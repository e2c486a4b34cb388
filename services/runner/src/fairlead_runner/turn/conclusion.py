"""Writes how a turn ended, and rests in the same commit if nothing continues."""

from contextlib import suppress

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_runner.drain.drain_context import DrainContext
from fairlead_runner.drain.staged_writer import HeldFact, StaleDecision
from fairlead_runner.turn.attempt import TurnOutcome
from fairlead_schema.events import AttemptFinished
from fairlead_service import ids
from fairlead_session.execution.ownership import owns, release
from fairlead_session.execution.rest import rest_rule
from fairlead_session.execution.retry import Retry, keeps_backoff
from fairlead_session.next_move import Rest
from fairlead_session.state.session import Session


class TurnConclusion:
    """Concludes the turns of one drain."""

    def __init__(self, drain: DrainContext) -> None:
        self._drain = drain
        self._context = drain.runner
        self._writer = drain.writer

    async def conclude(self, outcome: TurnOutcome) -> bool:
        """Write an outcome. An overflow and a retry keep the turn open. True: the session rests."""
        if outcome.end == "overflowed":
            await self._append(outcome, self._writer.durable.execution.generation)
            return False
        if outcome.retry is not None:
            return await self._retry(outcome.retry)
        return await self.end_turn(outcome)

    async def end_turn(self, outcome: TurnOutcome) -> bool:
        """End the turn, and release the session in the same commit if the next move is a rest.

        True: the session rests. If that commit is stale or too large, only the end of the turn is
        written, and the drain goes on.
        """
        writer, generation = self._writer, self._writer.durable.execution.generation
        if self._hold_finish(outcome, generation):
            return False
        writer.stage(*outcome.events)
        move = await self._drain.planner.next_move()
        rest = move if isinstance(move, Rest) and not rest_rule(move.reason).timer else None
        try:
            if rest is not None:
                writer.stage(release(writer.session, rest.reason, detail=rest.detail))
            await writer.commit()
        except (StaleDecision, CommitTooLarge):
            writer.unstage()
            await self._append(outcome, generation)
            return False
        await self._drain.calls.send_new(outcome.events)
        return rest is not None

    def _hold_finish(self, outcome: TurnOutcome, generation: int) -> bool:
        """Hold the end of a stream whose calls are durable already: the step may end very soon.

        `attempt.finished` is for whoever takes over while calls run. Beside its calls it costs
        nothing, and on its own a commit.
        """
        writer, runner = self._writer, self._context.runner
        match outcome.events:
            case (AttemptFinished(attempt_id=attempt_id) as finished,) if writer.durable.calls:
                pass
            case _:
                return False

        def still_holds(session: Session) -> bool:
            attempt = session.turn.attempt
            return (
                attempt is not None
                and attempt.attempt_id == attempt_id
                and owns(session, runner, generation)
            )

        writer.hold(HeldFact(finished, still_holds))
        return True

    async def _append(self, outcome: TurnOutcome, generation: int) -> None:
        await self._drain.event_writer(generation).append_until_written(outcome.events)

    async def _retry(self, retry: Retry) -> bool:
        """Write the retry. Wait here for a short delay; rest until a timer for a long one."""
        writer, context = self._writer, self._context
        generation = writer.durable.execution.generation
        await writer.append_until_written((retry.event,), context.runner, generation)
        if retry.delay_s <= context.settings.config.runner.park_after_s:
            await self._drain.waiter.until(
                lambda session: session.execution.interrupted, within_s=retry.delay_s
            )
            return False
        wake_at = ids.now_ms() + int(retry.delay_s * 1000)
        await context.eventlog.timers.wake_at(writer.at, wake_at)
        ownership, reason = self._drain.ownership, retry.event.error.message
        while owns(writer.session, context.runner, generation) and keeps_backoff(writer.session):
            with suppress(StaleDecision):  # A queued input waits as long as the turn does.
                return await ownership.rest("retry-later", reason, wake_at=wake_at)
        return False
