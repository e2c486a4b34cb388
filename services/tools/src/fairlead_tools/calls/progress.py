"""Progress of a running call: reports in the log at a bounded pace, output live as it appears."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from fairlead_eventlog.errors import CommitTooLarge, LogError, SessionErased
from fairlead_eventlog.ports import Deltas
from fairlead_schema.delta import ToolOutputDelta
from fairlead_schema.events import SessionEvent
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import TextContent, ToolContent
from fairlead_session.calls.lifecycle import ProgressReport, progress
from fairlead_session.calls.output_bounds import OutputLimits, shorten
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.timings import CallTimings

log = logging.getLogger(__name__)

LIVE_LENGTH_MAX: Final = 16 * 1024
SKIPPED: Final = "\n[... skipped ...]\n"


class CallProgress:
    """What the tool of one call reports while it runs. The log fences it like the settlement."""

    def __init__(
        self,
        call_log: CallLog,
        deltas: Deltas,
        at: Address,
        call: UnsettledCall,
        limits: OutputLimits,
        timings: CallTimings,
    ) -> None:
        self._log = call_log
        self._deltas = deltas
        self._at = at
        self._call = call
        self._limits = limits
        self._timings = timings
        self._last: ProgressReport | None = None
        self._written: ProgressReport | None = None
        self._reported = asyncio.Event()
        self._output = ""
        self._has_output = asyncio.Event()

    async def report(self, structured: Mapping[str, Any], content: tuple[ToolContent, ...]) -> None:
        """Note how far the tool is. The next write takes the last report, and skips the others."""
        bounded = tuple(
            TextContent(text=shorten(part.text, self._limits))
            if isinstance(part, TextContent)
            else part
            for part in content
        )
        self._last = (dict(structured), bounded)
        self._reported.set()

    async def emit_output(self, text: str) -> None:
        """Add to the live output. A flood is cut to its newest part."""
        self._output += text
        if len(self._output) > LIVE_LENGTH_MAX:
            self._output = SKIPPED + self._output[-LIVE_LENGTH_MAX // 2 :]
        self._has_output.set()

    @property
    def unwritten(self) -> ProgressReport | None:
        """The last report, if the log does not have it."""
        return None if self._last == self._written else self._last

    async def write_reports(self) -> None:
        """Write the last report again and again, each time after a longer pause."""
        pause_s = self._timings.progress_s
        while True:
            await self._reported.wait()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, self._timings.progress_s_max)
            self._reported.clear()
            last = self._last
            try:
                await self._log.commit(self._at, self._decide)
            except (SessionErased, RecordError):
                return
            except (CommitTooLarge, ValueError) as error:
                # It counts as written: it would keep the settlement from being recorded too.
                self._warn("progress cannot be recorded: it is dropped, the call runs on", error)
            except LogError as error:
                self._warn("progress was not recorded: it is tried again", error)
                self._reported.set()
                continue
            self._written = last

    async def broadcast_output(self) -> None:
        """Send the live output a few times a second, for as long as the tool runs."""
        while True:
            await self._has_output.wait()
            await self.flush_output()
            await asyncio.sleep(self._timings.live_s)

    async def flush_output(self) -> None:
        """Send the live output that was not sent yet."""
        self._has_output.clear()
        text, self._output = self._output, ""
        if text:
            call = self._call
            await self._deltas.send(
                self._at,
                ToolOutputDelta(
                    assistant_message_id=call.assistant_message_id,
                    call_id=call.call_id,
                    delta=text.encode(errors="backslashreplace").decode(),
                ),
            )

    def _warn(self, message: str, error: Exception) -> None:
        extra = {"session_id": self._at.session_id, "call_id": self._call.call_id}
        log.warning(message, extra=extra, exc_info=error)

    async def _decide(self, session: Session) -> tuple[tuple[SessionEvent, ...], None]:
        report = self.unwritten
        return () if report is None else progress(session, self._call, *report), None
