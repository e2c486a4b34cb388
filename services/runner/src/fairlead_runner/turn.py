"""One provider turn: a streamed request, durable starts and ends, live deltas in between."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import httpx

from fairlead_eventlog.errors import CommitTooLarge, LogUnavailable
from fairlead_eventlog.ports import Deltas
from fairlead_llm.http import stream
from fairlead_runner.model_target import ModelTarget
from fairlead_runner.staged_writer import OwnershipLost, StagedWriter
from fairlead_schema.events import AttemptOverflowed, SessionEvent, ToolFailed
from fairlead_schema.ids import RunnerId
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish
from fairlead_schema.provider.request import ModelRequest
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.compaction.compaction import can_recover_overflow, overflow_message
from fairlead_session.execution.ownership import owns
from fairlead_session.execution.recovery import hand_over
from fairlead_session.execution.retry import Retry, RetryPolicy, retry
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.stream import TurnStream
from fairlead_session.turn.stream_calls import Offer, ProtocolViolation

LINGER_S: Final = 0.002
# A nudge tells at once that somebody wrote; one that was lost costs no more than this.
LOOK_S: Final = 2.0

TurnEnd: TypeAlias = Literal["answered", "failed", "interrupted", "retried", "overflowed"]
OnWritten: TypeAlias = Callable[[tuple[SessionEvent, ...]], Awaitable[None]]
"""Is told what became durable: now it may have effects."""


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended, and the events that say so and are not written yet."""

    end: TurnEnd
    events: tuple[SessionEvent, ...]
    retry: Retry | None = None


class EventWriter:
    """Writes what happens while it happens: one commit at a time, everything waiting in the next."""

    def __init__(
        self, writer: StagedWriter, runner: RunnerId, generation: int, on_written: OnWritten
    ) -> None:
        self._writer = writer
        self._runner = runner
        self._generation = generation
        self._on_written = on_written
        self._waiting: list[SessionEvent] = []
        self._writing: asyncio.Task[None] | None = None
        self._settling = asyncio.Event()

    def put(self, events: tuple[SessionEvent, ...]) -> None:
        """Write these soon. Raises what an earlier write raised."""
        if self._writing is not None and self._writing.done():
            self._writing.result()
            self._writing = None
        self._waiting.extend(events)
        if self._waiting and self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def settle(self) -> tuple[SessionEvent, ...]:
        """Let the write under way finish; the answer is what no write has taken."""
        self._settling.set()
        if self._writing is not None:
            # Shielded: what is being written is neither lost nor half told by a cancellation.
            await asyncio.shield(self._writing)
        rest, self._waiting = tuple(self._waiting), []
        return rest

    def check(self) -> None:
        """Raise OwnershipLost once another runner owns the session."""
        if not owns(self._writer.durable, self._runner, self._generation):
            raise OwnershipLost(self._writer.at.session_id)

    async def append_until_written(self, events: tuple[SessionEvent, ...]) -> None:
        """Write these now, in as many commits as it takes."""
        try:
            await self._writer.append_until_written(events, self._runner, self._generation)
        except CommitTooLarge:
            first, rest = _halves(events)
            if not (first and rest):
                raise
            await self.append_until_written(first)
            await self.append_until_written(rest)
        else:
            await self._on_written(events)

    async def _write(self) -> None:
        # A quick answer is often whole by then: one commit tells all of it.
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._settling.wait()
        while self._waiting and not self._settling.is_set():
            events, self._waiting = tuple(self._waiting), []
            await self.append_until_written(events)


class ProviderAttempt:
    """One attempt at one turn."""

    def __init__(
        self,
        writer: StagedWriter,
        attempt: Attempt,
        target: ModelTarget,
        asked: tuple[Offer, ModelRequest],
        event_writer: EventWriter,
    ) -> None:
        offer, self._asked = asked
        self._writer = writer
        self._attempt = attempt
        self._target = target
        self._event_writer = event_writer
        self._publication = TurnStream(
            attempt.assistant_message_id,
            attempt.agent,
            attempt.model,
            target.price,
            offer=offer,
            attempt_id=attempt.attempt_id,
        )

    @property
    def finish(self) -> StepFinish | None:
        """How the provider ended the stream, with what it counted."""
        return self._publication.finish

    async def perform(
        self,
        client: httpx.AsyncClient,
        deltas: Deltas,
        policy: RetryPolicy,
        nudged: asyncio.Event,
    ) -> TurnOutcome:
        """Call the provider once and publish what it says, until it ends or somebody interrupts."""
        streaming = asyncio.create_task(self._stream(client, deltas, policy))
        try:
            while await streams_on(streaming, nudged):
                if await self._interrupted(nudged):
                    break
            if streaming.done():
                return await streaming
            await cancel_and_wait(streaming)
            said = (*await self._event_writer.settle(), *self._publication.interrupt())
            return TurnOutcome("interrupted", said)
        except asyncio.CancelledError:
            # The grace time is over: keep what was said, leave the turn to whoever comes next.
            await cancel_and_wait(streaming)
            said = (*await self._event_writer.settle(), *self._publication.interrupt())
            # A stream that is over said how the turn ended: it is not owed again.
            left = () if self._publication.over else (hand_over(self._attempt),)
            await self._event_writer.append_until_written((*said, *left))
            raise
        finally:
            # Whatever ended the wait: a stream that nobody listens to must not write on.
            await cancel_and_wait(streaming)

    async def _stream(
        self, client: httpx.AsyncClient, deltas: Deltas, policy: RetryPolicy
    ) -> TurnOutcome:
        end: TurnEnd = "answered"
        try:
            async with aclosing(stream(client, self._target.endpoint, self._asked)) as answer:
                async for event in answer:
                    if isinstance(event, ProviderFailure):
                        again = self._again(event, policy)
                        if again is not None:
                            return TurnOutcome("retried", (again.event,), again)
                        if self._recoverable(event):
                            return TurnOutcome("overflowed", (self._overflowed(event),))
                        end = "answered" if event.in_stream else "failed"
                    events, delta = self._publication.receive(self._named(event))
                    self._event_writer.put(events)
                    if delta is not None:
                        await deltas.send(self._writer.at, delta)
        except ProtocolViolation as violation:
            broken = ProviderFailure("malformed-stream", str(violation))
            self._event_writer.put(self._publication.receive(broken)[0])
            end = "failed"
        self._event_writer.put(self._publication.complete())
        return TurnOutcome(end, await self._event_writer.settle())

    def _again(self, failure: ProviderFailure, policy: RetryPolicy) -> Retry | None:
        """Whether to make the attempt again: only while nothing was said."""
        if self._publication.started:
            return None
        chance = random.random()  # noqa: S311 - it spreads retries, it guards nothing
        return retry(self._writer.durable, failure, policy, chance=chance)

    def _recoverable(self, failure: ProviderFailure) -> bool:
        """An overflow before any output is held back: a compaction may help."""
        overflow = failure.kind == "context-overflow" and not self._publication.started
        return overflow and can_recover_overflow(self._writer.durable, self._target.window)

    def _overflowed(self, failure: ProviderFailure) -> AttemptOverflowed:
        return AttemptOverflowed(
            attempt_id=self._attempt.attempt_id,
            message=failure.message,
            in_stream=failure.in_stream,
        )

    def _named(self, event: ProviderEvent) -> ProviderEvent:
        if not isinstance(event, ProviderFailure) or event.kind != "context-overflow":
            return event
        return replace(event, message=overflow_message(self._writer.durable, event.message))

    async def _interrupted(self, nudged: asyncio.Event) -> bool:
        nudged.clear()
        try:
            await self._writer.reload()
        except LogUnavailable:
            return False  # The next look will tell: only a write may cost the turn.
        self._event_writer.check()
        return self._writer.durable.execution.interrupted


def _halves(
    events: tuple[SessionEvent, ...],
) -> tuple[tuple[SessionEvent, ...], tuple[SessionEvent, ...]]:
    """Two parts; a call that was refused stays beside its failure, or somebody would run it."""
    middle = len(events) // 2
    while middle < len(events) and isinstance(events[middle], ToolFailed):
        middle += 1
    return events[:middle], events[middle:]


async def streams_on(streaming: asyncio.Task[Any], nudged: asyncio.Event) -> bool:
    """Wait for the stream's end, a nudge, or the next look; false at the end."""
    waiting = asyncio.create_task(nudged.wait())
    try:
        await asyncio.wait(
            {streaming, waiting}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
        )
        return not streaming.done()
    finally:
        waiting.cancel()
