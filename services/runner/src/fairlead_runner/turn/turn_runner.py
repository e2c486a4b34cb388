"""Takes a provider turn: resolve the model, cross the boundary, stream, conclude."""

import asyncio
import logging

import httpx

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_llm.errors import InvalidTransport
from fairlead_runner.drain.drain_context import DrainContext
from fairlead_runner.metrics import TURNS, observe_turn
from fairlead_runner.transforms.chain import RequestWithheld
from fairlead_runner.turn.attachment_reader import AttachmentsUnavailable
from fairlead_runner.turn.attempt import ProviderAttempt, TurnOutcome
from fairlead_runner.turn.boundary import Boundary, PreparedRequest
from fairlead_runner.turn.compactor import Compactor
from fairlead_runner.turn.conclusion import TurnConclusion
from fairlead_runner.turn.interrupt_watch import InterruptWatch
from fairlead_runner.turn.model_target import ModelNotConfigured, ModelTarget, resolve_model
from fairlead_service.logs import log_with
from fairlead_service.traces import names
from fairlead_service.traces.tracer import current_span, open_span
from fairlead_session.compaction.compaction import CompactionPlan
from fairlead_session.execution.recovery import fail_unrecordable_turn
from fairlead_session.input.options import choose_profile
from fairlead_session.next_move import TakeTurn
from fairlead_session.state.turn import Attempt

log = logging.getLogger(__name__)


class TurnRunner:
    """Takes the turns of one drain."""

    def __init__(
        self,
        drain: DrainContext,
        boundary: Boundary,
        compactor: Compactor,
        conclusion: TurnConclusion,
    ) -> None:
        self._drain = drain
        self._context = drain.runner
        self._writer = drain.writer
        self._boundary = boundary
        self._compactor = compactor
        self._conclusion = conclusion

    async def take(self, move: TakeTurn) -> bool:
        """Take one turn, or compact before it. True: the session rests."""
        with open_span(names.TURN, attributes={names.STEP: move.step}):
            return await self._take(move)

    async def _take(self, move: TakeTurn) -> bool:
        try:
            target = resolve_model(
                self._context.settings.config, choose_profile(self._writer.session, move.inputs)
            )
            client = self._context.clients(target.transport)
        except (ModelNotConfigured, InvalidTransport) as error:
            extra = self._drain.log_fields(reason=str(error))
            log.warning("provider not configured: session rests", extra=extra)
            return await self._drain.ownership.rest("failed", str(error))
        # If a steer makes this commit fail, the queued input still opens the activity.
        self._drain.planner.opening = move.inputs[0].message_id if move.inputs else None
        try:
            with open_span(names.PREPARE):
                prepared = await self._boundary.cross(move, target)
        except (RequestWithheld, AttachmentsUnavailable) as error:
            return await self._withhold(str(error))
        if isinstance(prepared, CompactionPlan):
            await self._compactor.compact(prepared, "auto", target)
            return False
        attempt = self._writer.durable.turn.attempt
        assert attempt is not None, "the boundary was just committed"
        with log_with(attempt_id=attempt.attempt_id):
            return await self._attempt(client, target, prepared, attempt)

    async def _withhold(self, reason: str) -> bool:
        """Rest until a transform works, or attachments can be read. The input stays in the inbox."""
        self._writer.unstage()
        if not await self._drain.ownership.claim():
            return True
        return await self._drain.ownership.rest("context-unavailable", reason)

    async def _attempt(
        self,
        client: httpx.AsyncClient,
        target: ModelTarget,
        prepared: PreparedRequest,
        attempt: Attempt,
    ) -> bool:
        """Make the dispatched attempt, and write how it ended."""
        context, durable = self._context, self._writer.durable
        ratios = durable.requests.token_ratios
        event_writer = self._drain.event_writer(attempt.generation)
        files_before = asyncio.create_task(
            context.file_snapshots.capture(self._writer.at, durable), name="files before a step"
        )
        provider = ProviderAttempt(
            self._writer, attempt, target, prepared, event_writer, files_before
        )
        nudged = self._drain.waiter.nudged
        watch = InterruptWatch(context, self._writer, attempt.generation, nudged)
        at = self._writer.at
        context.open_streams[at] = provider.turn_stream
        try:
            outcome = await provider.run(
                client, context.eventlog.deltas, context.settings.retries, watch
            )
            TURNS.labels(outcome.end).inc()
            current_span().set({names.END: outcome.end})
            observe_turn(
                attempt,
                ratios,
                provider.finish,
                cached=prepared.cached_tokens,
                price=target.price,
            )
            event_writer.check_ownership()
            return await self._conclusion.conclude(outcome)
        except CommitTooLarge as error:
            # The same request would bring as large an answer: the turn fails with the reason.
            extra = self._drain.log_fields(reason=str(error))
            log.warning("answer too large for the log: turn fails", extra=extra)
            self._writer.unstage()
            event_writer.check_ownership()
            events = fail_unrecordable_turn(self._writer.durable, str(error))
            return await self._conclusion.end_turn(TurnOutcome("failed", events))
        finally:
            if context.open_streams.get(at) is provider.turn_stream:
                del context.open_streams[at]
