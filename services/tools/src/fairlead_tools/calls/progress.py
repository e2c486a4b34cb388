"""What a running call tells: progress in the log at a bounded pace, output live while it appears."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from fairlead_eventlog.errors import LogError, SessionErased
from fairlead_eventlog.ports import Deltas
from fairlead_schema.delta import ToolOutputDelta
from fairlead_schema.events import SessionEvent, ToolProgressed
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import TextContent, ToolContent
from fairlead_session.calls.lifecycle import progress
from fairlead_session.calls.output_bounds import OutputLimits, shorten
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.log import CallLog

log = logging.getLogger(__name__)

# The first progress is written after this long, so quick calls write none; a long call's log grows
# slowly, because each pause is twice the one before.
PROGRESS_S: Final = 1.0
PROGRESS_S_MAX: Final = 16.0
LIVE_S: Final = 0.1
LIVE_LENGTH_MAX: Final = 16 * 1024
SKIPPED: Final = "\n[... skipped ...]\n"

Report: TypeAlias = tuple[dict[str, Any], tuple[ToolContent, ...]]


class CallProgress:
    """The voice of one run. Only what the log still takes for this worker's call is written."""

    def __init__(
        self,
        ledger: CallLog,
        deltas: Deltas,
        at: Address,
        call: UnsettledCall,
        limits: OutputLimits,
    ) -> None:
        self._ledger = ledger
        self._deltas = deltas
        self._at = at
        self._call = call
        self._limits = limits
        self._last: Report | None = None
        self._written: Report | None = None
        self._reported = asyncio.Event()
        self._live = ""
        self._heard = asyncio.Event()

    async def report(self, structured: Mapping[str, Any], content: tuple[ToolContent, ...]) -> None:
        """Note how far the run is. The last word counts; it is written when its time comes."""
        told = tuple(
            TextContent(text=shorten(one.text, self._limits))
            if isinstance(one, TextContent)
            else one
            for one in content
        )
        self._last = (dict(structured), told)
        self._reported.set()

    async def emit_output(self, text: str) -> None:
        """Broadcast output. What comes too fast for listeners is left out, the newest is kept."""
        self._live += text
        if len(self._live) > LIVE_LENGTH_MAX:
            self._live = SKIPPED + self._live[-LIVE_LENGTH_MAX // 2 :]
        self._heard.set()

    def unwritten(self, session: Session) -> tuple[ToolProgressed, ...]:
        """The last report if the log does not have it: a failure keeps it (E-28)."""
        if self._last is None or self._last == self._written:
            return ()
        return progress(session, self._call, *self._last)

    async def write(self) -> None:
        """Write progress for ever, each time after a longer pause."""
        pause_s = PROGRESS_S
        while True:
            await self._reported.wait()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PROGRESS_S_MAX)
            self._reported.clear()
            last = self._last
            try:
                await self._ledger.commit(self._at, self._decide)
            except (SessionErased, RecordError):
                return
            except (LogError, ValueError) as error:
                # Too large, or no text at all: the run goes on without it.
                extra = {"session_id": self._at.session_id, "call_id": self._call.call_id}
                log.warning("progress dropped", extra=extra, exc_info=error)
            self._written = last

    async def broadcast(self) -> None:
        """Send output for ever, a few times in a second."""
        while True:
            await self._heard.wait()
            await self.flush()
            await asyncio.sleep(LIVE_S)

    async def flush(self) -> None:
        """Send what was said and not sent yet."""
        self._heard.clear()
        text, self._live = self._live, ""
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

    async def _decide(self, session: Session) -> tuple[tuple[SessionEvent, ...], None]:
        return self.unwritten(session), None
