"""One run of a tool: limited in time, and stoppable until the tool has returned."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import to_json

from fairlead_service.traces import names
from fairlead_service.traces.tracer import current_span, records_content
from fairlead_session.calls.lifecycle import Failed, HaltReason, Outcome, Succeeded
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.metrics import CALLS_RUNNING, RUN_SECONDS
from fairlead_tools.registry.outcome import encode_output, error_text, tool_crash, tool_failure
from fairlead_tools.registry.registry import PreparedCall
from fairlead_tools.registry.tool import CallContext, CallFailed, Deferred, OutcomeUnknown, Result

log = logging.getLogger(__name__)

CANCEL_S: Final = CallTimings().cancel_s
REGISTERED: Final = "registered"

Stop: TypeAlias = HaltReason | Literal["leaving"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The tool was cancelled before it returned."""

    why: Stop


class ToolRun:
    """Runs the tool of one prepared call, at most once."""

    def __init__(
        self, prepared: PreparedCall, context: CallContext, *, cancel_s: float = CANCEL_S
    ) -> None:
        self._prepared = prepared
        self._cancel_s = cancel_s
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._stop: asyncio.Future[Stop] = self._loop.create_future()
        self._timeout: asyncio.Future[None] = self._loop.create_future()
        self._task: asyncio.Task[object] | None = None
        self._result: Outcome | Stopped | Deferred | None = None
        self._spool: Path | None = None

    def stop(self, why: Stop) -> None:
        """Cancel the tool. The first reason counts. A tool that has returned is not stopped."""
        if not self._stop.done():
            self._stop.set_result(why)

    async def result(self) -> Outcome | Stopped | Deferred:
        """Run the tool to its end. A crash of the tool is the failure of this call alone."""
        if self._result is None:
            began = self._loop.time()
            self._result = await self._wait(self._start())
            tool = self._prepared.tool
            name = REGISTERED if tool.remote else tool.name
            end = type(self._result).__name__.lower()
            RUN_SECONDS.labels(name, end).observe(self._loop.time() - began)
            self._note_end(self._result)
        return self._result

    async def result_within(self, seconds: float) -> Outcome | Stopped | Deferred | None:
        """Start the tool and wait for a while; None if the tool runs on."""
        task = self._start()
        await asyncio.wait({task}, timeout=seconds)
        return await self.result() if task.done() else None

    def take_spool(self) -> Path | None:
        """The file in which the tool left text, if it did. The caller removes the file."""
        spool, self._spool = self._spool, None
        return spool

    async def close(self) -> None:
        """Stop the tool if it runs, and remove a file that nobody took."""
        if self._task is not None and self._result is None:
            self.stop("lost")
            await self.result()
        if (spool := self.take_spool()) is not None:
            await asyncio.to_thread(spool.unlink, missing_ok=True)

    def _start(self) -> asyncio.Task[object]:
        """Start the tool, unless it was started. Its time limit counts from here."""
        if self._task is None:
            CALLS_RUNNING.inc()
            self._task = asyncio.create_task(self._execute())
            timer = self._loop.call_later(self._prepared.tool.timeout_s, self._time_out, self._task)
            self._task.add_done_callback(lambda _: CALLS_RUNNING.dec())
            self._task.add_done_callback(lambda _: timer.cancel())
        return self._task

    def _time_out(self, task: asyncio.Task[object]) -> None:
        """Cancel the tool by a timer, because nobody may wait for it while its start is written."""
        if not task.done() and not self._stop.done():
            self._timeout.set_result(None)
            task.cancel()

    async def _wait(self, task: asyncio.Task[object]) -> Outcome | Stopped | Deferred:
        try:
            if not task.done():
                first: set[asyncio.Future[Any]] = {task, self._stop, self._timeout}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if self._timeout.done():
            await self._wait_for_cancellation(task)
            reason = f"timed out after {self._prepared.tool.timeout_s:g} s"
            return tool_crash(reason, unseen=True)
        if task.done():
            return self._outcome(task)
        task.cancel()
        await self._wait_for_cancellation(task)
        return Stopped(self._stop.result())

    async def _execute(self) -> object:
        try:
            return await self._prepared.tool.execute(self._prepared.input, self._context)
        except (SystemExit, KeyboardInterrupt) as error:
            # The event loop would let these end the whole process.
            raise RuntimeError(f"the tool raised {error!r}") from error

    async def _wait_for_cancellation(self, task: asyncio.Task[object]) -> None:
        """Give a cancelled tool a moment to end. After that nobody waits for it."""
        _, late = await asyncio.wait({task}, timeout=self._cancel_s)
        task.add_done_callback(_discard_result)
        if late:
            log.error("tool ignores its cancellation: its call is settled", extra=self._ids())

    def _outcome(self, task: asyncio.Task[object]) -> Outcome | Deferred:
        if task.cancelled():
            return tool_crash("the tool cancelled itself")
        error = task.exception()
        if isinstance(error, CallFailed):
            return tool_failure(str(error), unseen=isinstance(error, OutcomeUnknown))
        if error is not None:
            log.warning("tool crashed: its call fails", exc_info=error, extra=self._ids())
            return tool_crash(error_text(error))
        returned = task.result()
        if isinstance(returned, Deferred):
            return returned
        self._spool = returned.spool if isinstance(returned, Result) else None
        try:
            prepared = self._prepared
            return encode_output(prepared.tool, returned, ignored=prepared.ignored)
        except Exception as defect:
            log.exception("output cannot be encoded: the call fails", extra=self._ids())
            return tool_crash(error_text(defect))

    def _note_end(self, result: Outcome | Stopped | Deferred) -> None:
        """Say in the span of the call what ran, and how it ended."""
        span = current_span()
        if not span.live:
            return
        tool = self._prepared.tool
        span.rename(f"{names.EXECUTE_TOOL} {tool.name}")
        span.set({names.TOOL_NAME: tool.name})
        if isinstance(result, Failed | Stopped):
            span.fail("tool_failed" if isinstance(result, Failed) else f"stopped_{result.why}")
        if records_content():
            said = result.content if isinstance(result, Succeeded) else result
            span.set(
                {
                    names.ARGUMENTS: self._prepared.input.model_dump_json(),
                    names.RESULT: to_json(said, serialize_unknown=True).decode(),
                }
            )

    def _ids(self) -> dict[str, str]:
        context = self._context
        return {
            "session_id": context.at.session_id,
            "call_id": context.call_id,
            "tool": self._prepared.tool.name,
        }


def _discard_result(task: asyncio.Task[object]) -> None:
    """Read the result of an abandoned task, so that asyncio reports no error, and remove its file."""
    if task.cancelled() or task.exception() is not None:
        return
    returned = task.result()
    if isinstance(returned, Result) and returned.spool is not None:
        returned.spool.unlink(missing_ok=True)
