"""The safe boundary: observe once, then make everything durable before the provider is called."""

import asyncio
import logging
from dataclasses import dataclass

from fairlead_runner.drain.fresh_decision import is_stopped, wait_while_fresh
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.metrics import PREFIX_BREAKS, PRUNINGS
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.transforms.chain import TransformedRequest
from fairlead_runner.turn.agent_instructions import agent_instructions
from fairlead_runner.turn.attachment_reader import AttachmentReader
from fairlead_runner.turn.context_observer import ObservedLocation, build_question
from fairlead_runner.turn.model_target import ModelTarget, request_origin
from fairlead_schema.context import ContextSample, ObserveContext
from fairlead_schema.events import AttemptDispatched
from fairlead_schema.provider.request import ModelRequest
from fairlead_service import ids
from fairlead_service.traces.tracer import origin
from fairlead_session.compaction.compaction import CompactionPlan, FittingRequest, fit
from fairlead_session.compaction.estimate import estimate_request
from fairlead_session.input.options import activity_after, choose_profile, select_tools
from fairlead_session.instructions.prompt_texts import missing_tools
from fairlead_session.next_move import TakeTurn
from fairlead_session.state.activity import Activity
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session
from fairlead_session.structured.contract import OutputContract
from fairlead_session.turn.boundary import TurnIds, dispatch, prepare_turn
from fairlead_session.turn.prefix import (
    Prefix,
    broken_since_last_request,
    expected_cached_tokens,
    is_narrowed,
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

    def __init__(self, context: RunnerContext, writer: StagedWriter, nudged: asyncio.Event) -> None:
        self._context = context
        self._writer = writer
        self._nudged = nudged
        self._seen: tuple[str, ObserveContext, ObservedLocation] | None = None
        self._attachments = AttachmentReader(
            context.eventlog, pool=context.settings.config.pools.default
        )

    async def observe(self) -> ContextSample:
        """One sample per boundary, however many moves it takes to get there.

        The session itself adds its model to the sample, because no location knows the model.
        """
        session = self._writer.session
        return self._sample(session, await self._look(session))

    async def cross(self, move: TakeTurn, target: ModelTarget) -> PreparedRequest | CompactionPlan:
        """Cross in one commit. Raises StaleDecision, RequestWithheld, AttachmentsUnavailable.

        If the request seems too large, everything before it stays staged for the compaction.
        """
        writer, settings = self._writer, self._context.settings
        chosen = choose_profile(writer.session, move.inputs)
        seen = await self._look(chosen)
        self._seen = None
        sample = self._sample(chosen, seen)
        offer, notes = self._offer(move, target, seen)
        turn_ids = TurnIds(ids.attempt_id(), ids.message_id(), ids.message_id())
        known = self._context.lowered_histories.get(writer.at)
        inputs = await self._take_attachments(chosen, target.agent, move.inputs)
        writer.stage(*prepare_turn(writer.session, inputs, sample, turn_ids, known, notes=notes))
        fitting = fit(
            writer.session,
            target.identity,
            offer,
            settings.compaction,
            target.window,
            known,
        )
        if isinstance(fitting, CompactionPlan):
            return fitting
        self._context.lowered_histories.put(writer.at, fitting.history)
        if fitting.pruned is not None:
            writer.stage(fitting.pruned)
        transformed = await self._transform(fitting, target)
        request, kept = transformed.request, _keeps_turns(fitting, transformed.request)
        sent = prefix(request, fitting.history if kept else None, narrowed=offer.has_own_tools)
        media = self._context.stored_media
        request = await media.inline(writer.at, request, target.inputs)
        self._report_break(sent, target)
        cached = expected_cached_tokens(writer.session, sent, target.agent, target.identity.model)
        attempt = dispatch(
            turn_ids,
            agent=target.agent,
            model=target.identity.model,
            step=move.step,
            request_hash=sent.fingerprint(),
            estimate=_estimate(fitting, request),
        )
        writer.stage(_note_circumstances(attempt, transformed))
        await writer.commit()
        PRUNINGS.inc(fitting.pruned is not None)
        return PreparedRequest(offer, request, cached)

    async def _take_attachments(
        self, session: Session, agent: str, inputs: tuple[PendingInput, ...]
    ) -> tuple[PendingInput, ...]:
        """The inputs with what their attachments name. Only a stop ends it: what is taken is kept."""
        if not self._attachments.has_to_ask(inputs):
            return inputs
        taking = self._attachments.take(self._writer.at, session, agent, inputs)
        return await wait_while_fresh(taking, self._writer, self._nudged, ends=is_stopped)

    async def _transform(self, fitting: FittingRequest, target: ModelTarget) -> TransformedRequest:
        """The request after the transforms of its tenant. Without any nothing is built or asked.

        Raises StaleDecision as soon as somebody interrupts the session, or writes anything else.
        """
        chain, at = self._context.transforms, self._writer.at
        transforms = await chain.of(at.tenant)
        if not transforms:
            return TransformedRequest(fitting.request)
        asked = request_origin(at, target, fitting.request, "turn")
        running = chain.run(transforms, fitting.request, asked)
        return await wait_while_fresh(running, self._writer, self._nudged)

    def _report_break(self, sent: Prefix, target: ModelTarget) -> None:
        """Count and log a request that does not begin like the one before in its epoch."""
        session = self._writer.session
        source = broken_since_last_request(session, sent, target.agent, target.identity.model)
        if source is None or session.requests.last is None:
            return
        if source == "tools" and is_narrowed(session.requests.last.fingerprint, sent):
            return
        PREFIX_BREAKS.labels(source).inc()
        extra = {
            "session_id": session.id,
            "source": source,
            "was": session.requests.last.fingerprint,
            "now": sent.fingerprint(),
        }
        log.warning("request prefix changed: the provider's cache is lost", extra=extra)

    def _offer(
        self, move: TakeTurn, target: ModelTarget, seen: ObservedLocation
    ) -> tuple[Offer, tuple[str, ...]]:
        """The tools of the turn, and notes about a selection that names others.

        A final step offers no tools.
        """
        session, calls_max = self._writer.session, self._context.settings.config.runner.calls_max
        activity = activity_after(session, move.inputs)
        tools, unknown = select_tools(seen.tools, activity.tools)
        tools = {} if move.final else tools
        if unknown and move.inputs:
            extra = {"session_id": session.id, "tools": list(unknown)}
            log.warning(
                "prompt selects tools that nobody offers: it runs without them", extra=extra
            )
        offer = Offer(
            target.agent,
            tools,
            calls_max,
            final=move.final,
            narrowed=activity.tools is not None,
            output=build_contract(activity, target, alone=not tools),
        )
        return offer, (missing_tools(unknown),) if unknown and move.inputs else ()

    async def _look(self, session: Session) -> ObservedLocation:
        """The location as this boundary sees it, for the agent of the turn."""
        agent = self._context.settings.agent(session)
        question = build_question(self._writer.at, session, agent)
        pool = self._context.pool_of(session)
        if self._seen is None or self._seen[:2] != (pool, question):
            seen = await self._context.observer.observe(session, question)
            self._seen = (pool, question, seen)
        return self._seen[2]

    def _sample(self, session: Session, seen: ObservedLocation) -> ContextSample:
        settings = self._context.settings
        instructions = agent_instructions(settings.config, session)
        return add_session_sources(seen.sample, settings.model(session), instructions)


def _note_circumstances(
    attempt: AttemptDispatched, transformed: TransformedRequest
) -> AttemptDispatched:
    """The attempt with the transforms of its request and its trace, if it has any."""
    notes = {"transforms": transformed.uses, "trace": origin()}
    known = {name: value for name, value in notes.items() if value is not None}
    return attempt.model_copy(update=known) if known else attempt


def _keeps_turns(fitting: FittingRequest, request: ModelRequest) -> bool:
    return request.turns is fitting.request.turns


def _estimate(fitting: FittingRequest, request: ModelRequest) -> int:
    """The estimate of the request that is sent. Only a transform makes it another one."""
    if request is fitting.request:
        return fitting.estimate
    measured = (len(fitting.history.turns), fitting.history.units)
    return estimate_request(request, measured if _keeps_turns(fitting, request) else (0, 0))


def build_contract(
    activity: Activity, target: ModelTarget, *, alone: bool
) -> OutputContract | None:
    """What the answer must fit, if a prompt asked for structured output."""
    if activity.output_schema is None:
        return None
    mode = target.output_mode_alone if alone else target.output_mode
    return OutputContract(activity.output_schema, mode, activity.repairs)
