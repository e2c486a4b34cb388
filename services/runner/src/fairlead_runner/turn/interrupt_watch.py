"""Waits for a provider's stream, and meanwhile looks for an interrupt in the log."""

import asyncio
from typing import Any

from fairlead_eventlog.errors import LogUnavailable
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_runner.runner_context import RunnerContext


class InterruptWatch:
    """Watches the log during one stream. A nudge makes it look at once."""

    def __init__(
        self, context: RunnerContext, writer: StagedWriter, generation: int, nudged: asyncio.Event
    ) -> None:
        self._context = context
        self._writer = writer
        self._generation = generation
        self._nudged = nudged

    async def wait(self, streaming: asyncio.Task[Any]) -> bool:
        """Wait for the end of a stream. False: an interrupt came first. Raises OwnershipLost."""
        while not await self._wait_once(streaming):
            if await self._is_interrupted():
                return False
        return True

    async def _wait_once(self, streaming: asyncio.Task[Any]) -> bool:
        """Wait for the stream, a nudge, or the time to look again. True: the stream has ended."""
        nudge = asyncio.create_task(self._nudged.wait())
        look_s = self._context.settings.timings.interrupt_look_s
        try:
            await asyncio.wait(
                {streaming, nudge}, timeout=look_s, return_when=asyncio.FIRST_COMPLETED
            )
            return streaming.done()
        finally:
            nudge.cancel()

    async def _is_interrupted(self) -> bool:
        self._nudged.clear()
        try:
            await self._writer.reload()
        except LogUnavailable:
            return False  # The stream goes on: only a failed write may end the turn.
        self._writer.check_ownership(self._context.runner, self._generation)
        return self._writer.durable.execution.interrupted
