"""Sends the calls of one session to their pool, for one drain."""

from typing import Final

from fairlead_eventlog.session_cache import Versioned
from fairlead_runner.calls.requests import CallRequest, new_calls, send_calls
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext
from fairlead_schema.events import SessionEvent
from fairlead_service.ids import now_ms
from fairlead_session.state.session import Session

LOOK_AGAIN_MS: Final = 10_000


class CallSender:
    """Sends each call once per ownership.

    A new owner sends it again: the first request may have been lost with its worker.
    """

    def __init__(self, context: RunnerContext, writer: StagedWriter) -> None:
        self._context = context
        self._writer = writer
        self._sent: set[tuple[int, CallRequest]] = set()

    async def send_new(self, events: tuple[SessionEvent, ...]) -> None:
        """Send the calls among events that have become durable."""
        await self.send(new_calls(events))

    async def send(self, calls: list[CallRequest]) -> None:
        """Send the calls that this ownership has not sent yet."""
        writer = self._writer
        versioned = writer.versioned if writer.session is writer.durable else None
        await self._send(calls, writer.session.execution.generation, versioned)

    async def send_again(self, calls: list[CallRequest], generation: int) -> None:
        """Send started calls whose request may be lost. Their worker reads the log."""
        await self._send(calls, generation, None)

    async def _send(
        self, calls: list[CallRequest], generation: int, versioned: Versioned[Session] | None
    ) -> None:
        context, token = self._context, str(generation)
        if self._writer.durable.execution.rested == "parked":
            # A parked session keeps its generation, and each look at it may find a lost request.
            token = f"{generation}:{now_ms() // LOOK_AGAIN_MS}"
        unsent = [call for call in calls if (generation, call) not in self._sent]
        await send_calls(
            context.eventlog,
            self._writer.at,
            context.pool_of(self._writer.session),
            unsent,
            token=token,
            versioned=versioned,
        )
        self._sent.update((generation, call) for call in unsent)
