"""Carries out compactions: a start in the log, a summary from the model, an end or a reason."""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from fairlead_eventlog.errors import LogUnavailable
from fairlead_llm.errors import InvalidTransport
from fairlead_llm.http import stream
from fairlead_runner.metrics import COMPACTIONS, SAVED
from fairlead_runner.model_target import ModelNotConfigured, ModelTarget, resolve_model
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.staged_writer import OwnershipLost, StagedWriter
from fairlead_runner.turn import TurnOutcome, streams_on
from fairlead_schema.delta import CompactionDelta
from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    CompactionUsed,
    SessionEvent,
)
from fairlead_schema.provider.events import ProviderFailure, StepFinish, TextChunk
from fairlead_service import ids
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.compaction import compaction
from fairlead_session.compaction.compaction import TRIES_MAX, CompactionPlan, NothingToCompact
from fairlead_session.execution.ownership import owns
from fairlead_session.execution.recovery import fail_overflowed_step
from fairlead_session.next_move import Compact
from fairlead_session.turn.usage import cost, tokens

log = logging.getLogger(__name__)

Cause: TypeAlias = Literal["auto", "manual", "overflow"]

_UNFIT: Final = frozenset({"content-filter", "error"})


@dataclass(slots=True)
class _Summary:
    """What a model has said so far."""

    text: str = ""
    finish: StepFinish | None = None
    failure: str | None = None


class Compactor:
    """Compacts one session for one drain."""

    def __init__(self, context: RunnerContext, writer: StagedWriter, nudged: asyncio.Event) -> None:
        self._context = context
        self._writer = writer
        self._nudged = nudged

    async def serve(self, move: Compact) -> TurnOutcome | None:
        """Do what was asked for, or what an overflow needs.

        When that does not help, the answer is how the turn failed.
        """
        made = self._planned(move)
        if isinstance(made, tuple):
            plan, target = made
            await self.perform(plan, move.cause, target)
        elif move.cause == "manual":
            COMPACTIONS.labels("manual", made.outcome).inc()
            self._writer.stage(made)
            await self._writer.commit()
        session = self._writer.session
        attempt = session.turn.attempt
        if attempt is None or attempt.overflow is None or session.execution.interrupted:
            return None
        end: Literal["answered", "failed"] = "answered" if attempt.overflow.in_stream else "failed"
        return TurnOutcome(end, fail_overflowed_step(attempt))

    def _planned(self, move: Compact) -> tuple[CompactionPlan, ModelTarget] | CompactionFailed:
        session = self._writer.session
        if move.refusal is not None:
            return _failed("refused", move.refusal)
        if session.compaction.tries >= TRIES_MAX:
            return _failed("failed", f"it was begun {TRIES_MAX} times and never finished")
        try:
            target = resolve_model(self._context.settings.config, session)
        except ModelNotConfigured as error:
            return _failed("refused", str(error))
        policy = self._context.settings.compaction
        plan = compaction.plan(session, target.identity, policy, target.window)
        if isinstance(plan, NothingToCompact) and move.cause == "manual":
            # Somebody asked: what would be kept as recent is summarised as well.
            whole = replace(policy, keep_tokens=0)
            plan = compaction.plan(session, target.identity, whole, target.window)
        return (
            _failed("nothing", plan.why) if isinstance(plan, NothingToCompact) else (plan, target)
        )

    async def perform(self, plan: CompactionPlan, cause: Cause, target: ModelTarget) -> None:
        """Start it with whatever is staged, ask for the summary, and write what came of it.

        Raises StaleDecision before it started. An interrupt leaves the start alone, which changes nothing.
        """
        writer = self._writer
        started = CompactionStarted(
            message_id=ids.message_id(), reason="manual" if cause == "manual" else "auto"
        )
        writer.stage(started)
        await writer.commit()
        generation = writer.durable.execution.generation
        summary = await self._heard(plan, started, target, generation)
        if summary is None:
            COMPACTIONS.labels(cause, "interrupted").inc()
            return
        events = self._concluded(plan, started, summary, target)
        before = compaction.weight(writer.durable, target.identity)
        await writer.append_until_written(events, self._context.runner, generation)
        ended = isinstance(events[-1], CompactionEnded)
        COMPACTIONS.labels(cause, "ended" if ended else "failed").inc()
        if ended:
            SAVED.inc(max(0, before - compaction.weight(writer.durable, target.identity)))

    def _concluded(
        self,
        plan: CompactionPlan,
        started: CompactionStarted,
        summary: _Summary,
        target: ModelTarget,
    ) -> tuple[SessionEvent, ...]:
        used = self._used(started, summary, target)
        why = summary.failure
        if why is None:
            policy = self._context.settings.compaction
            session, identity = self._writer.durable, target.identity
            ended = compaction.end(session, started, plan, summary.text, identity, policy)
            if isinstance(ended, CompactionEnded):
                return (*used, ended)
            why = ended.why
        log.warning("not compacted", extra={"session_id": self._writer.at.session_id, "why": why})
        failed = _failed("failed", why)
        told = {"message_id": started.message_id, "reason": started.reason}
        return (*used, failed.model_copy(update=told))

    def _used(
        self, started: CompactionStarted, summary: _Summary, target: ModelTarget
    ) -> tuple[CompactionUsed, ...]:
        if summary.finish is None:
            return ()
        counted = tokens(summary.finish.usage)
        spent = cost(counted, target.price)
        return (
            CompactionUsed(
                message_id=started.message_id,
                model=target.identity.model,
                cost=spent,
                tokens=counted,
            ),
        )

    async def _heard(
        self, plan: CompactionPlan, started: CompactionStarted, target: ModelTarget, generation: int
    ) -> _Summary | None:
        """The summary, or None when somebody interrupted meanwhile."""
        streaming = asyncio.create_task(self._stream(plan, started, target))
        try:
            while await streams_on(streaming, self._nudged):
                if await self._interrupted(generation):
                    return None
            return await streaming
        finally:
            await cancel_and_wait(streaming)

    async def _stream(
        self, plan: CompactionPlan, started: CompactionStarted, target: ModelTarget
    ) -> _Summary:
        summary, deltas = _Summary(), self._context.eventlog.deltas
        try:
            client = self._context.clients(target.transport)
        except InvalidTransport as error:
            return _Summary(failure=str(error))
        async with aclosing(stream(client, target.endpoint, plan.asked)) as answer:
            async for event in answer:
                match event:
                    case TextChunk(text=text):
                        summary.text += text
                        delta = CompactionDelta(message_id=started.message_id, text=text)
                        await deltas.send(self._writer.at, delta)
                    case StepFinish(finish=finish):
                        summary.finish = event
                        if finish in _UNFIT:
                            summary.failure = f"the model ended its summary with: {finish}"
                    case ProviderFailure(message=message):
                        summary.failure = message
                    case _:
                        pass
        return summary

    async def _interrupted(self, generation: int) -> bool:
        self._nudged.clear()
        try:
            await self._writer.reload()
        except LogUnavailable:
            return False
        durable = self._writer.durable
        if not owns(durable, self._context.runner, generation):
            raise OwnershipLost(self._writer.at.session_id)
        return durable.execution.interrupted


def _failed(outcome: Literal["nothing", "refused", "failed"], message: str) -> CompactionFailed:
    return CompactionFailed(reason="manual", outcome=outcome, message=message)
