"""Asks the small model for titles, beside the sessions' own work: no drain waits for a title."""

import asyncio
import logging
from contextlib import aclosing
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_llm.errors import InvalidTransport
from fairlead_llm.http import stream
from fairlead_runner.metrics import TITLES
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.transforms.chain import RequestWithheld
from fairlead_runner.turn.chat_span import ChatRecord, open_chat_span
from fairlead_runner.turn.model_target import (
    ModelNotConfigured,
    ModelTarget,
    request_origin,
    resolve_small_model,
)
from fairlead_schema.events import SessionEvent, TitleRequested
from fairlead_schema.ids import AttemptId
from fairlead_schema.provider.events import ProviderFailure, StepFinish, TextChunk
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.logs import log_with
from fairlead_service.supervise import cancel_and_wait
from fairlead_service.traces import names
from fairlead_service.traces.tracer import open_span
from fairlead_session.execution.budget import exceeded_limit
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.session import Session
from fairlead_session.titles import (
    TitleAnswer,
    end_title,
    is_title_due,
    request_title,
    title_request,
)
from fairlead_session.turn.usage import cost, tokens

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 8
"""So many titles are requested at once. The timer of a session brings what finds no place."""
TIMER_SPARE_MS: Final = 500
TEXT_LENGTH_MAX: Final = 4_000
"""A title needs no more of an answer, however long the model goes on."""
PATIENCE: Final = 2
"""After so many times its timeout, nobody works on an attempt any more."""


class Titles:
    """The titles that one runner asks for."""

    def __init__(self, context: RunnerContext) -> None:
        self._context = context
        self._running: dict[Address, asyncio.Task[None]] = {}
        self._timeout_s = context.settings.config.runner.title_timeout_s
        self._patience_ms = int(PATIENCE * self._timeout_s * 1000)

    async def arm(self, at: Address, session: Session) -> bool:
        """Whether the session needs a title now. Its timer then outlives this process."""
        context = self._context
        if context.settings.config.small_model is None or not is_at_rest(session):
            return False
        if context.eventlog.status.current.level < TitleRequested.level:
            return False
        if session.execution.rested != "idle" or not self._is_due(session):
            return False
        try:
            await context.eventlog.timers.wake_at(
                at, ids.now_ms() + self._patience_ms + TIMER_SPARE_MS
            )
        except LogError as error:
            extra = {"session_id": at.session_id, "reason": str(error)}
            log.warning("timer of a title not set: the next drain tries again", extra=extra)
            return False
        return True

    def _is_due(self, session: Session) -> bool:
        return is_title_due(session, left_before_ms=ids.now_ms() - self._patience_ms)

    def start(self, at: Address) -> None:
        """Ask for a title in the background, unless too many are asked for."""
        if at in self._running or len(self._running) >= REQUESTS_MAX:
            return
        task = self._running[at] = asyncio.create_task(self._run(at))
        task.add_done_callback(lambda _done: self._running.pop(at, None))

    async def shutdown(self) -> None:
        """Give up what is asked for. The timers of the sessions bring it to other runners."""
        await cancel_and_wait(*self._running.values())

    async def _run(self, at: Address) -> None:
        extra = {"session_id": at.session_id}
        try:
            fields = log_with(tenant=at.tenant, session_id=at.session_id)
            with fields, open_span(names.TITLE):
                await self._make_title(at)
        except (LogError, RecordError) as error:
            extra["reason"] = str(error)
            log.warning("title not written: the session keeps its first words", extra=extra)
        except ModelNotConfigured as error:
            extra["reason"] = str(error)
            log.warning("small model cannot be asked for titles", extra=extra)
        except Exception:
            log.exception("title failed by a defect: the first words stay", extra=extra)

    async def _make_title(self, at: Address) -> None:
        context = self._context
        session = (await context.sessions.load(at)).state
        config = context.settings.config
        agent = config.agent_name(session.profile.agent if session.profile else None)
        target = resolve_small_model(config, agent)
        if target is None or exceeded_limit(session, await context.tenant_usage.load(at.tenant)):
            return
        attempt_id = ids.attempt_id()
        requested = await self._record(at, attempt_id, target)
        if requested is None:
            return
        answer = await self._ask(at, requested, target)
        TITLES.labels("failed" if answer.failure else "answered").inc()
        if answer.failure:
            extra = {"session_id": at.session_id, "reason": answer.failure}
            log.warning("small model gave no title: the first words stay", extra=extra)

        async def end(now: Session) -> tuple[tuple[SessionEvent, ...], None]:
            return end_title(now, attempt_id, target.identity.model, answer), None

        await context.session_writer.commit(at, end)

    async def _record(
        self, at: Address, attempt_id: AttemptId, target: ModelTarget
    ) -> Session | None:
        """Record the attempt before its request leaves; None if no title is due any more."""

        async def request(session: Session) -> tuple[tuple[SessionEvent, ...], bool]:
            model = target.identity.model
            events = request_title(
                session, attempt_id, model, left_before_ms=ids.now_ms() - self._patience_ms
            )
            return events, bool(events)

        written = await self._context.session_writer.commit(at, request)
        return written.after.state if written.value else None

    async def _ask(self, at: Address, session: Session, target: ModelTarget) -> TitleAnswer:
        with open_chat_span(target, title_request(session, target.identity)) as span:
            return await self._stream(at, session, target, ChatRecord(span))

    async def _stream(
        self, at: Address, session: Session, target: ModelTarget, record: ChatRecord
    ) -> TitleAnswer:
        text, finish = "", None
        try:
            client = self._context.clients(target.transport)
            request = title_request(session, target.identity)
            chain = self._context.transforms
            transforms = await chain.of(at.tenant)
            if transforms:
                origin = request_origin(at, target, request, "title")
                request = (await chain.run(transforms, request, origin)).request
            async with (
                asyncio.timeout(self._timeout_s),
                aclosing(stream(client, target.endpoint, request)) as answer,
            ):
                async for event in answer:
                    record.receive(event)
                    if isinstance(event, ProviderFailure):
                        return TitleAnswer(failure=event.message)
                    if isinstance(event, TextChunk) and len(text) < TEXT_LENGTH_MAX:
                        text += event.text
                    finish = event if isinstance(event, StepFinish) else finish
        except TimeoutError:
            return TitleAnswer(failure=f"no title within {self._timeout_s:g} s")
        except (InvalidTransport, RequestWithheld) as error:
            return TitleAnswer(failure=str(error))
        used = tokens(finish.usage) if finish is not None else TitleAnswer().tokens
        return TitleAnswer(text=text, cost=cost(used, target.price), tokens=used)
