"""The safe boundary: observe once, then make everything durable before the provider is called."""

import asyncio
import logging
from dataclasses import dataclass

from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.metrics import PREFIX_BREAKS, PRUNINGS
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.turn.context_observer import build_question, observe_context
from fairlead_runner.turn.model_target import ModelTarget
from fairlead_schema.context import ContextSample, ObserveContext
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.tools.request import ToolInfo
from fairlead_service import ids
from fairlead_session.compaction.compaction import CompactionPlan, fit
from fairlead_session.next_move import TakeTurn
from fairlead_session.turn.boundary import TurnIds, dispatch, prepare_turn
from fairlead_session.turn.prefix import (
    Prefix,
    broken_since_last_request,
    expected_cached_tokens,
    prefix,
)
from fairlead_session.turn.session_context import add_session_sources
from fairlead_session.turn.stream_calls import Offer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request whose attempt is in the log."""

    offer: Offer
    request: ModelRequest
    cached_tokens: int
    """How many of its tokens the provider may have in its cache."""


class Boundary:
    """Crosses the boundaries of one session."""

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        self._context = context
        self._writer = writer
        self._sample: tuple[ObserveContext, ContextSample] | None = None

    async def observe(self) -> ContextSample:
        """One sample per boundary, however many moves it takes to get there.

        The session itself adds its model to the sample, because no location knows the model.
        """
        session, settings = self._writer.session, self._context.settings
        question = build_question(self._writer.at.tenant, session, settings.agent(session))
        if self._sample is None or self._sample[0] != question:
            sample = await observe_context(
                self._context.eventlog,
                session,
                question,
                pool=self._context.pool,
                timeout_s=settings.config.runner.observe_timeout_s,
            )
            self._sample = (question, sample)
        return add_session_sources(self._sample[1], settings.model(session))

    async def cross(self, move: TakeTurn, target: ModelTarget) -> PreparedRequest | CompactionPlan:
        """Cross in one commit. Raises StaleDecision.

        If the request seems too large, everything before it stays staged for the compaction.
        """
        writer, settings = self._writer, self._context.settings
        sample, tools = await asyncio.gather(self.observe(), self._tools(move, target))
        self._sample = None
        calls_max = settings.config.runner.calls_max
        offer = Offer(target.agent, tools, calls_max, final=move.final)
        turn_ids = TurnIds(ids.attempt_id(), ids.message_id(), ids.message_id())
        writer.stage(*prepare_turn(writer.session, move.inputs, sample, turn_ids))
        histories = self._context.lowered_histories
        fitting = fit(
            writer.session,
            target.identity,
            offer,
            settings.compaction,
            target.window,
            histories.get(writer.at),
        )
        if isinstance(fitting, CompactionPlan):
            return fitting
        histories.put(writer.at, fitting.history)
        if fitting.pruned is not None:
            writer.stage(fitting.pruned)
        sent = prefix(fitting.request, fitting.history)
        self._report_break(sent, target)
        cached = expected_cached_tokens(writer.session, sent, target.agent, target.identity.model)
        attempt = dispatch(
            turn_ids,
            agent=target.agent,
            model=target.identity.model,
            step=move.step,
            request_hash=sent.fingerprint(),
            estimate=fitting.estimate,
        )
        writer.stage(attempt)
        await writer.commit()
        PRUNINGS.inc(fitting.pruned is not None)
        return PreparedRequest(offer, fitting.request, cached)

    def _report_break(self, sent: Prefix, target: ModelTarget) -> None:
        """Count and log a request that does not begin like the one before in its epoch."""
        session = self._writer.session
        source = broken_since_last_request(session, sent, target.agent, target.identity.model)
        if source is None or session.requests.last is None:
            return
        PREFIX_BREAKS.labels(source).inc()
        extra = {
            "session_id": session.id,
            "source": source,
            "was": session.requests.last.fingerprint,
            "now": sent.fingerprint(),
        }
        log.warning("request prefix changed: the provider's cache is lost", extra=extra)

    async def _tools(self, move: TakeTurn, target: ModelTarget) -> dict[str, ToolInfo]:
        """The tools to offer. A final step offers none."""
        if move.final:
            return {}
        writer = self._writer
        return await self._context.catalogs.load(writer.at, writer.session, target.agent)
