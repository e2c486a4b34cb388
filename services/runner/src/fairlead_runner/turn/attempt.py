"""One provider attempt: a streamed request, whose events are written while it streams."""

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal, TypeAlias

import httpx

from fairlead_eventlog.ports import Deltas
from fairlead_llm.http import stream
from fairlead_runner.drain.event_writer import EventWriter
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.metrics import FIRST_OUTPUT_SECONDS, RETRIES
from fairlead_runner.turn.boundary import PreparedRequest
from fairlead_runner.turn.chat_span import ChatRecord, open_chat_span
from fairlead_runner.turn.interrupt_watch import InterruptWatch
from fairlead_runner.turn.model_target import ModelTarget
from fairlead_schema.events import AttemptOverflowed, SessionEvent
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.compaction.overflow import can_recover_overflow, overflow_message
from fairlead_session.execution.recovery import hand_over
from fairlead_session.execution.retry import Retry, RetryPolicy, retry
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.stream import TurnStream
from fairlead_session.turn.stream_calls import ProtocolViolation

TurnEnd: TypeAlias = Literal["answered", "failed", "interrupted", "retried", "overflowed"]


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended, with the events of that end that are not written yet."""

    end: TurnEnd
    events: tuple[SessionEvent, ...]
    retry: Retry | None = None


class ProviderAttempt:
    """One attempt at one turn."""

    def __init__(
        self,
        writer: StagedWriter,
        attempt: Attempt,
        target: ModelTarget,
        prepared: PreparedRequest,
        event_writer: EventWriter,
        files_before: asyncio.Task[str | None],
    ) -> None:
        self._writer = writer
        self._attempt = attempt
        self._target = target
        self._request = prepared.request
        self._event_writer = event_writer
        self._files_before = files_before
        self.turn_stream = TurnStream(
            attempt.assistant_message_id,
            attempt.agent,
            attempt.model,
            target.price,
            offer=prepared.offer,
            attempt_id=attempt.attempt_id,
        )

    @property
    def finish(self) -> StepFinish | None:
        """The provider's end of the stream, with its token counts."""
        return self.turn_stream.finish

    async def run(
        self,
        client: httpx.AsyncClient,
        deltas: Deltas,
        policy: RetryPolicy,
        watch: InterruptWatch,
    ) -> TurnOutcome:
        """Call the provider once and publish its answer, until it ends or an interrupt comes."""
        streaming = asyncio.create_task(self._stream(client, deltas, policy))
        try:
            await watch.wait(streaming)
            if streaming.done():
                return await streaming
            await cancel_and_wait(streaming)
            return TurnOutcome("interrupted", await self._interrupt())
        except asyncio.CancelledError:
            # The grace time is over: keep the output, and leave the turn to the next owner.
            await cancel_and_wait(streaming)
            events = await self._interrupt()
            # A complete stream has ended the turn, so the turn is not owed again.
            owed = () if self.turn_stream.over else hand_over(self._attempt)
            await self._event_writer.append_until_written((*events, *owed))
            raise
        finally:
            # After any error, the stream must not go on writing.
            await cancel_and_wait(streaming, self._files_before)

    async def _interrupt(self) -> tuple[SessionEvent, ...]:
        """Close the output as it stands."""
        return (*await self._event_writer.finish(), *self.turn_stream.interrupt())

    async def _stream(
        self, client: httpx.AsyncClient, deltas: Deltas, policy: RetryPolicy
    ) -> TurnOutcome:
        with open_chat_span(self._target, self._request) as span:
            return await self._follow(client, deltas, policy, ChatRecord(span))

    async def _follow(
        self, client: httpx.AsyncClient, deltas: Deltas, policy: RetryPolicy, record: ChatRecord
    ) -> TurnOutcome:
        end: TurnEnd = "answered"
        began = monotonic()
        try:
            async with aclosing(stream(client, self._target.endpoint, self._request)) as answer:
                async for event in answer:
                    record.receive(event)
                    if isinstance(event, ProviderFailure):
                        outcome = self._retry_or_compact(event, policy)
                        if outcome is not None:
                            return outcome
                        end = "answered" if event.in_stream else "failed"
                    if not self.turn_stream.started:
                        provider = FIRST_OUTPUT_SECONDS.labels(self._attempt.model.provider_id)
                        provider.observe(monotonic() - began)
                        # The request left long ago. No call starts before its step has started.
                        self.turn_stream.snapshot = await self._files_before
                    events, delta = self.turn_stream.receive(self._explain(event))
                    self._event_writer.write_soon(events)
                    if delta is not None:
                        await deltas.send(self._writer.at, delta)
        except ProtocolViolation as violation:
            failure = ProviderFailure("malformed-stream", str(violation))
            self._event_writer.write_soon(self.turn_stream.receive(failure)[0])
            end = "failed"
        self._event_writer.write_soon(self.turn_stream.complete())
        return TurnOutcome(end, await self._event_writer.finish())

    def _retry_or_compact(
        self, failure: ProviderFailure, policy: RetryPolicy
    ) -> TurnOutcome | None:
        """A retry or a compaction instead of a failed turn: only before any output."""
        if self.turn_stream.started:
            return None
        chance = random.random()  # noqa: S311 - it spreads retries, it guards nothing
        again = retry(self._writer.durable, failure, policy, chance=chance)
        if again is not None:
            RETRIES.labels(failure.kind).inc()
            return TurnOutcome("retried", (again.event,), again)
        if failure.kind == "context-overflow" and can_recover_overflow(
            self._writer.durable, self._target.window
        ):
            overflowed = AttemptOverflowed(
                attempt_id=self._attempt.attempt_id,
                message=failure.message,
                in_stream=failure.in_stream,
            )
            return TurnOutcome("overflowed", (overflowed,))
        return None

    def _explain(self, event: ProviderEvent) -> ProviderEvent:
        """An overflow after a compaction says that the compaction did not help."""
        if not isinstance(event, ProviderFailure) or event.kind != "context-overflow":
            return event
        return replace(event, message=overflow_message(self._writer.durable, event.message))
