"""Sends the calls of one session to their pool, for one drain."""

from fairlead_runner.calls.requests import CallRequest, new_calls, send_calls
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext
from fairlead_schema.events import SessionEvent


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
        context, writer = self._context, self._writer
        generation = writer.session.execution.generation
        unsent = [call for call in calls if (generation, call) not in self._sent]
        versioned = writer.versioned if writer.session is writer.durable else None
        await send_calls(
            context.eventlog,
            writer.at,
            context.pool,
            unsent,
            token=str(generation),
            versioned=versioned,
        )
        self._sent.update((generation, call) for call in unsent)
