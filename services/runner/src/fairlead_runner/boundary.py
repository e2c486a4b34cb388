"""The safe boundary in the shell: observe once, then make everything durable before the call."""

import asyncio
import logging

from fairlead_runner import context_observer
from fairlead_runner.metrics import PREFIX_BREAKS, PRUNINGS
from fairlead_runner.model_target import ModelTarget
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.staged_writer import StagedWriter
from fairlead_schema.context import ContextSample, ObserveContext
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.tools.request import ToolInfo
from fairlead_service import ids
from fairlead_session.compaction.compaction import CompactionPlan, fit
from fairlead_session.next_move import TakeTurn
from fairlead_session.turn.boundary import TurnIds, approach, dispatch
from fairlead_session.turn.prefix import broken_since_last_request, expected_cached_tokens, prefix
from fairlead_session.turn.session_context import add_session_sources
from fairlead_session.turn.stream_calls import Offer

log = logging.getLogger(__name__)


class Boundary:
    """Crosses boundaries of one session."""

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        self._context = context
        self._writer = writer
        self._sample: tuple[ObserveContext, ContextSample] | None = None
        self.cached = 0
        """How many tokens of the last request its provider may have had in its cache."""

    async def sample(self) -> ContextSample:
        """One sample per boundary, however many moves it takes to get there.

        Which model speaks is the session's own matter: no location knows it.
        """
        session, settings = self._writer.session, self._context.settings
        asked = context_observer.question(session, settings.agent(session))
        if self._sample is None or self._sample[0] != asked:
            seen = await context_observer.sample(
                self._context.eventlog,
                session,
                asked,
                pool=self._context.pool,
                timeout_s=settings.config.runner.observe_timeout_s,
            )
            self._sample = (asked, seen)
        return add_session_sources(self._sample[1], settings.model(session))

    async def cross(
        self, move: TakeTurn, target: ModelTarget
    ) -> tuple[Offer, ModelRequest] | CompactionPlan:
        """Cross in one commit; what was not written never happened. Raises StaleDecision.

        A request that seems too large leaves everything before it staged, for whoever compacts.
        """
        writer, identity = self._writer, target.identity
        sample, tools = await asyncio.gather(self.sample(), self._tools(move, target))
        self._sample = None
        runner = self._context.settings.config.runner
        offer = Offer(target.agent, tools, runner.calls_max, final=move.final)
        minted = TurnIds(ids.attempt_id(), ids.message_id(), ids.message_id())
        writer.stage(*approach(writer.session, move.inputs, sample, minted))
        policy = self._context.settings.compaction
        fitting = fit(writer.session, identity, offer, policy, target.window)
        if isinstance(fitting, CompactionPlan):
            return fitting
        if fitting.pruned is not None:
            writer.stage(fitting.pruned)
        attempt = dispatch(
            minted,
            agent=target.agent,
            model=identity.model,
            step=move.step,
            request_hash=self._prefix(fitting.request, target),
            estimate=fitting.estimate,
        )
        writer.stage(attempt)
        await writer.commit()
        PRUNINGS.inc(fitting.pruned is not None)
        return offer, fitting.request

    def _prefix(self, asked: ModelRequest, target: ModelTarget) -> str:
        """The request's fingerprint; a prefix that breaks inside its epoch is told."""
        session, current = self._writer.session, prefix(asked)
        source = broken_since_last_request(session, current, target.agent, target.identity.model)
        self.cached = expected_cached_tokens(session, current, target.agent, target.identity.model)
        if source is not None and session.requests.last is not None:
            PREFIX_BREAKS.labels(source).inc()
            was, now = session.requests.last.fingerprint, current.fingerprint()
            log.warning(
                "prefix broken",
                extra={"session_id": session.id, "source": source, "was": was, "now": now},
            )
        return current.fingerprint()

    async def _tools(self, move: TakeTurn, target: ModelTarget) -> dict[str, ToolInfo]:
        if move.final:
            return {}
        return await self._context.catalogs.offered(
            self._writer.at, self._writer.session, target.agent
        )
