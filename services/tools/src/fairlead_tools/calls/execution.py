"""One run of a tool: bounded in time from outside, and stoppable until the tool has returned."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ValidationError

from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep
from fairlead_schema.tools.content import Json
from fairlead_session.calls.lifecycle import Failed, HaltReason, Outcome, Succeeded
from fairlead_tools.metrics import CALLS_RUNNING
from fairlead_tools.registry.registry import PreparedCall, describe_errors
from fairlead_tools.registry.tool import CallContext, CallFailed, DeferredCall, Result, Tool

log = logging.getLogger(__name__)

# How long a cancelled tool may take to let go; after that it is abandoned and its call settled.
# A command needs three seconds between the request to end and the order.
CANCEL_S: Final = 5.0
MESSAGE_LENGTH_MAX: Final = 1_000_000

Stop: TypeAlias = HaltReason | Literal["leaving"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The tool was cancelled before it returned."""

    why: Stop


class ToolRun:
    """The run of one prepared call."""

    def __init__(self, prepared: PreparedCall, context: CallContext) -> None:
        self._prepared = prepared
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._stop: asyncio.Future[Stop] = self._loop.create_future()
        self._late: asyncio.Future[None] = self._loop.create_future()
        self._task: asyncio.Task[object] | None = None
        self._ended: Outcome | Stopped | DeferredCall | None = None
        self.spool: Path | None = None
        """Text that the tool left in a file: whoever settles the call removes it."""

    def stop(self, why: Stop) -> None:
        """Cancel the tool. The first reason counts; once the tool has returned, none does."""
        if not self._stop.done():
            self._stop.set_result(why)

    @property
    def over(self) -> bool:
        """Whether the tool does not run, or was waited for to the end."""
        return self._task is None or self._ended is not None

    def begin(self) -> asyncio.Task[object]:
        """Let the tool run, if it does not yet. From here on its time is limited."""
        if self._task is None:
            CALLS_RUNNING.inc()
            self._task = asyncio.create_task(self._execute())
            timer = self._loop.call_later(self._prepared.tool.timeout_s, self._time_out, self._task)
            self._task.add_done_callback(lambda _: CALLS_RUNNING.dec())
            self._task.add_done_callback(lambda _: timer.cancel())
        return self._task

    async def run(self) -> Outcome | Stopped | DeferredCall:
        """Run the tool to its outcome. A crash is this call's failure and nobody else's."""
        if self._ended is None:
            self._ended = await self._run(self.begin())
        return self._ended

    def _time_out(self, task: asyncio.Task[object]) -> None:
        """Cancel the tool, also while nobody waits for it: its start may take long to be written."""
        if not task.done() and not self._stop.done():
            self._late.set_result(None)
            task.cancel()

    async def _run(self, task: asyncio.Task[object]) -> Outcome | Stopped | DeferredCall:
        try:
            if not task.done():
                waited: set[asyncio.Future[Any]] = {task, self._stop, self._late}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if self._late.done():
            await self._let_go(task)
            return tool_crash(f"timed out after {self._prepared.tool.timeout_s:g} s")
        if task.done():
            return self._outcome(task)
        task.cancel()
        await self._let_go(task)
        return Stopped(self._stop.result())

    async def _execute(self) -> object:
        try:
            return await self._prepared.tool.execute(self._prepared.input, self._context)
        except (SystemExit, KeyboardInterrupt) as error:
            # The loop would let these end the whole process.
            raise RuntimeError(f"the tool raised {error!r}") from error

    async def _let_go(self, task: asyncio.Task[object]) -> None:
        """Give a cancelled tool a moment to end; after that nobody waits for it."""
        _, late = await asyncio.wait({task}, timeout=CANCEL_S)
        task.add_done_callback(_forget)
        if late:
            log.error("tool ignores its cancellation", extra=self._ids())

    def _outcome(self, task: asyncio.Task[object]) -> Outcome | DeferredCall:
        if task.cancelled():
            return tool_crash("the tool cancelled itself")
        error = task.exception()
        if isinstance(error, CallFailed):
            return tool_failure(str(error))
        if error is not None:
            log.warning("tool crashed", exc_info=error, extra=self._ids())
            return tool_crash(error_text(error))
        returned = task.result()
        if isinstance(returned, DeferredCall):
            return returned
        self.spool = returned.spool if isinstance(returned, Result) else None
        try:
            return encode_output(self._prepared.tool, returned)
        except Exception as projected:
            log.exception("output cannot be told", extra=self._ids())
            return tool_crash(error_text(projected))

    def _ids(self) -> dict[str, str]:
        context = self._context
        return {
            "session_id": context.at.session_id,
            "call_id": context.call_id,
            "tool": self._prepared.tool.name,
        }


def encode_output(tool: Tool, returned: object) -> Outcome:
    """What a tool returned, checked against its model and told to the model by its projection."""
    result = returned if isinstance(returned, Result) else Result(returned)
    # An instance may have been made without a check: dumped, it is checked like anything else.
    raw = result.output
    if isinstance(raw, BaseModel):
        raw = raw.model_dump(by_alias=True, warnings=False)
    try:
        output = tool.output.model_validate(raw)
    except ValidationError as error:
        return tool_crash(f"Invalid tool output: {describe_errors(error)}")
    value: Json = output.model_dump(mode="json", by_alias=True)
    if is_too_deep(value):
        return tool_crash(f"Invalid tool output: nested deeper than {DEPTH_MAX} levels")
    content = tool.project(value) if result.content is None else result.content
    structured = value if isinstance(value, dict) else {} if content else {"output": value}
    return Succeeded(structured=structured, content=content, facts=result.facts)


def tool_crash(why: str) -> Failed:
    """A failure that the tool did not declare."""
    return tool_failure(f"Tool execution failed: {why}")


def tool_failure(message: str) -> Failed:
    """A failure in words that any log can hold."""
    return Failed(message[:MESSAGE_LENGTH_MAX].encode(errors="backslashreplace").decode())


def error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _forget(task: asyncio.Task[object]) -> None:
    """Look at a task that nobody waits for: its error is not reported, its file is not left."""
    if task.cancelled() or task.exception() is not None:
        return
    returned = task.result()
    if isinstance(returned, Result) and returned.spool is not None:
        returned.spool.unlink(missing_ok=True)
