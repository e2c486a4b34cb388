"""Carries out compactions: writes the start, streams the summary, writes the conclusion."""

import asyncio
import logging
from contextlib import aclosing

from fairlead_llm.errors import InvalidTransport
from fairlead_llm.http import stream
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.metrics import COMPACTIONS, SAVED
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.transforms.chain import RequestWithheld
from fairlead_runner.turn.attempt import TurnOutcome
from fairlead_runner.turn.chat_span import ChatRecord, open_chat_span
from fairlead_runner.turn.interrupt_watch import InterruptWatch
from fairlead_runner.turn.model_target import (
    ModelNotConfigured,
    ModelTarget,
    request_origin,
    resolve_model,
)
from fairlead_schema.delta import CompactionDelta
from fairlead_schema.events import CompactionEnded, CompactionFailed, StepFailed
from fairlead_schema.provider.events import TextChunk
from fairlead_schema.provider.request import ModelRequest
from fairlead_service import ids
from fairlead_service.supervise import cancel_and_wait
from fairlead_service.traces import names
from fairlead_service.traces.tracer import open_span
from fairlead_session.compaction import lifecycle
from fairlead_session.compaction.compaction import CompactionPlan, estimate_history
from fairlead_session.compaction.lifecycle import Cause, CompactionRun, Summary
from fairlead_session.compaction.overflow import fail_overflowed_step
from fairlead_session.input.options import choose_profile
from fairlead_session.next_move import Compact

log = logging.getLogger(__name__)


class Compactor:
    """Compacts one session for one drain."""

    def __init__(self, context: RunnerContext, writer: StagedWriter, nudged: asyncio.Event) -> None:
        self._context = context
        self._writer = writer
        self._nudged = nudged

    async def serve(self, move: Compact) -> TurnOutcome | None:
        """Compact because a client asked for it or a request overflowed.

        After an overflow that no compaction could help, the answer is how the turn failed.
        """
        plan = self._plan(move)
        if not isinstance(plan, CompactionFailed):
            await self.compact(plan[0], move.cause, plan[1])
        elif move.cause == "manual":
            COMPACTIONS.labels("manual", plan.outcome).inc()
            self._writer.stage(plan)
            await self._writer.commit()
        events = fail_overflowed_step(self._writer.session)
        if not events:
            return None
        final = any(isinstance(event, StepFailed) and event.raised for event in events)
        return TurnOutcome("failed" if final else "answered", events)

    def _plan(self, move: Compact) -> tuple[CompactionPlan, ModelTarget] | CompactionFailed:
        session, settings = self._writer.session, self._context.settings
        refusal = lifecycle.check_budget_and_tries(session, move.cause, move.refusal)
        if refusal is not None:
            return refusal
        try:
            target = resolve_model(settings.config, choose_profile(session))
        except ModelNotConfigured as error:
            return lifecycle.fail(move.cause, "refused", str(error))
        plan = lifecycle.prepare(
            session, move.cause, target.identity, settings.compaction, target.window
        )
        return plan if isinstance(plan, CompactionFailed) else (plan, target)

    async def compact(self, plan: CompactionPlan, cause: Cause, target: ModelTarget) -> None:
        """Write the start with everything staged, request the summary, write the conclusion.

        Raises StaleDecision before the start. After an interrupt the start stands alone in the log,
        which changes nothing.
        """
        with open_span(names.COMPACTION, attributes={names.CAUSE: cause}):
            await self._compact(plan, cause, target)

    async def _compact(self, plan: CompactionPlan, cause: Cause, target: ModelTarget) -> None:
        writer = self._writer
        started = lifecycle.start(ids.message_id(), cause)
        writer.stage(started)
        await writer.commit()
        generation = writer.durable.execution.generation
        policy = self._context.settings.compaction
        run = CompactionRun(started, plan, target.identity, policy, target.price)
        summary = await self._summarise(run, target, generation)
        if summary is None:
            COMPACTIONS.labels(cause, "interrupted").inc()
            return
        before = estimate_history(writer.durable, target.identity)
        events = lifecycle.conclude(writer.durable, run, summary)
        await writer.append_until_written(events, self._context.runner, generation)
        match events[-1]:
            case CompactionEnded():
                COMPACTIONS.labels(cause, "ended").inc()
                saved = before - estimate_history(writer.durable, target.identity)
                SAVED.inc(max(0, saved))
            case CompactionFailed(message=reason):
                COMPACTIONS.labels(cause, "failed").inc()
                extra = {"session_id": writer.at.session_id, "reason": reason}
                log.warning("compaction failed: history stays whole", extra=extra)
            case _:
                raise AssertionError("a compaction ends or fails")

    async def _summarise(
        self, run: CompactionRun, target: ModelTarget, generation: int
    ) -> Summary | None:
        """The summary; None if the session was interrupted first."""
        watch = InterruptWatch(self._context, self._writer, generation, self._nudged)
        streaming = asyncio.create_task(self._stream(run, target))
        try:
            return await streaming if await watch.wait(streaming) else None
        finally:
            await cancel_and_wait(streaming)

    async def _stream(self, run: CompactionRun, target: ModelTarget) -> Summary:
        summary, deltas = Summary(), self._context.eventlog.deltas
        try:
            client = self._context.clients(target.transport)
        except InvalidTransport as error:
            return Summary(failure=str(error))
        try:
            request = await self._transform(run.plan.request, target)
        except RequestWithheld as error:
            return Summary(failure=str(error))
        with open_chat_span(target, request) as span:
            record = ChatRecord(span)
            async with aclosing(stream(client, target.endpoint, request)) as answer:
                async for event in answer:
                    record.receive(event)
                    summary = lifecycle.receive(summary, event)
                    if isinstance(event, TextChunk):
                        delta = CompactionDelta(message_id=run.started.message_id, text=event.text)
                        await deltas.send(self._writer.at, delta)
        return summary

    async def _transform(self, request: ModelRequest, target: ModelTarget) -> ModelRequest:
        """The request after the transforms of its tenant. Raises RequestWithheld."""
        chain, at = self._context.transforms, self._writer.at
        transforms = await chain.of(at.tenant)
        if not transforms:
            return request
        origin = request_origin(at, target, request, "compaction")
        return (await chain.run(transforms, request, origin)).request
