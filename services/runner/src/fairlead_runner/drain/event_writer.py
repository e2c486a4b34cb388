"""Writes the events of a stream while the stream goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from fairlead_eventlog.errors import CommitTooLarge
from fairlead_runner.drain.staged_writer import StagedWriter
from fairlead_schema.events import SessionEvent, ToolFailed, ToolSucceeded
from fairlead_schema.ids import RunnerId

LINGER_S: Final = 0.002

OnWritten: TypeAlias = Callable[[tuple[SessionEvent, ...]], Awaitable[None]]
"""Receives the events that became durable, so that they may have effects."""


class EventWriter:
    """Writes facts in the background: one commit at a time, with everything that waits for it."""

    def __init__(
        self, writer: StagedWriter, runner: RunnerId, generation: int, on_written: OnWritten
    ) -> None:
        self._writer = writer
        self._runner = runner
        self._generation = generation
        self._on_written = on_written
        self._waiting: list[SessionEvent] = []
        self._writing: asyncio.Task[None] | None = None
        self._finishing = asyncio.Event()

    def write_soon(self, events: tuple[SessionEvent, ...]) -> None:
        """Put events into the next commit. Raises the error of an earlier write."""
        if self._writing is not None and self._writing.done():
            self._writing.result()
            self._writing = None
        self._waiting.extend(events)
        if self._waiting and self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def finish(self) -> tuple[SessionEvent, ...]:
        """Let the current write finish, and return the events that no write has taken."""
        self._finishing.set()
        if self._writing is not None:
            # A cancelled drain must not cut off a write: its outcome would be unknown.
            await asyncio.shield(self._writing)
        unwritten, self._waiting = tuple(self._waiting), []
        return unwritten

    def check_ownership(self) -> None:
        """Raise OwnershipLost once another runner owns the session."""
        self._writer.check_ownership(self._runner, self._generation)

    async def append_until_written(self, events: tuple[SessionEvent, ...]) -> None:
        """Write events now, in as many commits as they need. Raises OwnershipLost."""
        try:
            await self._writer.append_until_written(events, self._runner, self._generation)
        except CommitTooLarge:
            first, second = _halve(events)
            if not (first and second):
                raise
            await self.append_until_written(first)
            await self.append_until_written(second)
        else:
            await self._on_written(events)

    async def _write(self) -> None:
        # A quick answer is often complete after the pause: one commit then holds all of it.
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._finishing.wait()
        while self._waiting and not self._finishing.is_set():
            events, self._waiting = tuple(self._waiting), []
            await self.append_until_written(events)


def _halve(
    events: tuple[SessionEvent, ...],
) -> tuple[tuple[SessionEvent, ...], tuple[SessionEvent, ...]]:
    """Two parts. A call stays beside its settlement, or a worker would run the call."""
    middle = len(events) // 2
    while middle < len(events) and isinstance(events[middle], ToolFailed | ToolSucceeded):
        middle += 1
    return events[:middle], events[middle:]
