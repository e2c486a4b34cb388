"""The second phase of a call: its tool runs, bounded in time, and stops when the log says so."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.calls.lifecycle import Outcome, ProgressReport, Succeeded
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.calls.decision import Runnable
from fairlead_tools.calls.interrupts import watch_interrupts
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.progress import CallProgress
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.calls.tool_run import Stopped, ToolRun
from fairlead_tools.outputs import open_output_file
from fairlead_tools.registry.tool import Deferred

# A pure tool may run for this long before its start is written. If it is over by then, one commit
# starts and settles its call (docs/adr/0020).
SPECULATIVE_RUN_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that this worker may run now, with its run, which has to be closed."""

    at: Address
    call: UnsettledCall
    run: ToolRun
    progress: CallProgress
    limits: OutputLimits
    principal: PrincipalName | None = None
    """The principal for which the call and its outputs count."""
    outcome: Outcome | None = None
    """The outcome as the log may hold it, if the tool is over already."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, and the last progress if the log does not have it."""

    end: Outcome | Stopped | Deferred
    unwritten: ProgressReport | None = None


class RunPhase:
    """Runs the tools of one worker's calls."""

    def __init__(
        self,
        eventlog: EventLog,
        log: CallLog,
        outputs: OutputRetention,
        spools: Path,
        timings: CallTimings,
    ) -> None:
        self._timings = timings
        self._eventlog = eventlog
        self._log = log
        self._outputs = outputs
        self._spools = spools
        self._open: set[ToolRun] = set()
        self._bounding: dict[ToolRun, asyncio.Task[Outcome]] = {}
        """The outcomes of quick tools that take a while to become what the log may hold."""
        self.is_leaving = False

    def prepare(self, runnable: Runnable) -> Ready:
        """Prepare a run. The tool does not start yet."""
        at, call = runnable.context.at, runnable.call
        limits = runnable.prepared.tool.limits or self._outputs.limits
        deltas, timings = self._eventlog.deltas, self._timings
        progress = CallProgress(self._log, deltas, at, call, limits, timings)
        outputs, directory = self._eventlog.outputs, self._spools
        context = replace(
            runnable.context,
            report=progress.report,
            emit_output=progress.emit_output,
            open_managed=partial(open_output_file, outputs, at.tenant, directory=directory),
        )
        run = ToolRun(runnable.prepared, context, cancel_s=timings.cancel_s)
        self._open.add(run)
        return Ready(at, call, run, progress, limits, context.principal)

    async def run_speculatively(self, ready: Ready) -> Ready:
        """Start a pure tool and wait a moment. The answer holds the outcome of a tool that succeeded.

        A large output is stored beside the start of the call, and the call is settled after both.
        """
        result = await ready.run.result_within(SPECULATIVE_RUN_S)
        if not isinstance(result, Succeeded):
            return ready
        await ready.progress.flush_output()
        bounding = asyncio.create_task(self._bound(ready, result))
        self._bounding[ready.run] = bounding
        await asyncio.wait({bounding}, timeout=SPECULATIVE_RUN_S)
        return replace(ready, outcome=bounding.result()) if bounding.done() else ready

    async def run(self, ready: Ready, seq: int) -> RunResult:
        """Run a tool to its end, or until an event after a sequence of the log stops it."""
        if ready.outcome is not None:
            return RunResult(ready.outcome, ready.progress.unwritten)
        if ready.run in self._bounding:
            return RunResult(await self._bounding[ready.run], ready.progress.unwritten)
        if self.is_leaving:
            ready.run.stop("leaving")
        try:
            end = await self._follow(ready, seq)
            # From here on nothing from outside keeps the result of the tool from being settled.
            if not isinstance(end, Stopped | Deferred):
                end = await self._bound(ready, end)
            return RunResult(end, ready.progress.unwritten)
        finally:
            await self.close(ready)

    def stop_all(self) -> None:
        """Stop every tool, and every one that is still to run: the worker leaves."""
        self.is_leaving = True
        for run in self._open:
            run.stop("leaving")

    async def close(self, ready: Ready) -> None:
        """Stop the tool if it runs, and remove what it left. A second call does nothing."""
        self._open.discard(ready.run)
        bounding = self._bounding.pop(ready.run, None)
        if bounding is not None:
            await cancel_and_wait(bounding)
        await ready.run.close()

    async def _follow(self, ready: Ready, seq: int) -> Outcome | Stopped | Deferred:
        """Wait for the tool; meanwhile watch for interrupts and pass on what the tool reports."""
        beside = (
            watch_interrupts(self._eventlog.log, ready.at, ready.call, seq, ready.run.stop),
            ready.progress.write_reports(),
            ready.progress.broadcast_output(),
        )
        tasks = tuple(asyncio.create_task(work) for work in beside)
        try:
            return await ready.run.result()
        finally:
            await cancel_and_wait(*tasks)
            await ready.progress.flush_output()

    async def _bound(self, ready: Ready, outcome: Outcome) -> Outcome:
        """The outcome as the log may hold it."""
        spool = ready.run.take_spool()
        return await self._outputs.bound(
            ready.at, outcome, principal=ready.principal, limits=ready.limits, spool=spool
        )
