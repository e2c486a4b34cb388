"""One run of a call in this worker: the tool, what it tells on the way, and what it came to."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_schema.subjects import Address
from fairlead_session.calls.lifecycle import Outcome, Succeeded
from fairlead_tools.calls.begin import Ready
from fairlead_tools.calls.execution import Stop, Stopped, ToolRun
from fairlead_tools.calls.interrupts import watch
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.progress import CallProgress
from fairlead_tools.outputs import open_output_file
from fairlead_tools.registry.tool import DeferredCall

# How long a call that may run any number of times runs before its start is written: one that is over
# by then is started and settled in one commit (docs/adr/0020).
SPRINT_S: Final = 0.01

Ended: TypeAlias = Outcome | Stopped | DeferredCall


class Run:
    """Its tool runs at most once, from the sprint on or from the wait for its end."""

    def __init__(
        self,
        at: Address,
        ready: Ready,
        eventlog: EventLog,
        ledger: CallLog,
        retention: OutputRetention,
        spool_dir: str | None,
    ) -> None:
        self.at = at
        self.call = ready.call
        self._log = eventlog.log
        self._retention = retention
        self._limits = ready.prepared.tool.limits or retention.limits
        self.telling = CallProgress(ledger, eventlog.deltas, at, ready.call, self._limits)
        context = replace(
            ready.context,
            report=self.telling.report,
            emit_output=self.telling.emit_output,
            open_managed=partial(
                open_output_file, eventlog.outputs, at.tenant, directory=spool_dir
            ),
        )
        self._performance = ToolRun(ready.prepared, context)
        self._recorded: Outcome | None = None
        self._quick = True

    def stop(self, why: Stop) -> None:
        """Cancel the tool; once it has returned, nothing does."""
        self._performance.stop(why)

    async def sprint(self) -> None:
        """Let it run for a moment before anything is written of it."""
        task = self._performance.begin()
        await asyncio.wait({task}, timeout=SPRINT_S)
        if task.done() and isinstance(ended := await self._performance.run(), Succeeded):
            await self.telling.flush()
            await self.recordable(ended)

    @property
    def quick(self) -> Succeeded | None:
        """What it came to, if it was over at once and well."""
        return self._recorded if self._quick and isinstance(self._recorded, Succeeded) else None

    def slow_down(self) -> None:
        """Its start and its end do not go into one commit."""
        self._quick = False

    async def ended(self, seq: int) -> Ended:
        """Wait for its end, watching the log from a sequence on for a reason to stop."""
        beside = (
            watch(self._log, self.at, self.call, seq, self._performance),
            self.telling.write(),
            self.telling.broadcast(),
        )
        tasks = tuple(asyncio.create_task(one) for one in beside)
        try:
            return await self._performance.run()
        finally:
            for one in tasks:
                one.cancel()
            await self.telling.flush()

    async def recordable(self, ended: Outcome) -> Outcome:
        """What the tool came to as the log may hold it; what it left in a file goes."""
        if self._recorded is None:
            spool, self._performance.spool = self._performance.spool, None
            self._recorded = await self._retention.recordable(
                self.at, ended, limits=self._limits, spool=spool
            )
        return self._recorded

    async def drop(self) -> None:
        """Nobody wants it any more, or it is over."""
        if not self._performance.over:
            self.stop("lost")
            await self._performance.run()
        if self._performance.spool is not None:
            await asyncio.to_thread(self._performance.spool.unlink, missing_ok=True)
