"""Retention: what a call returned becomes what its settlement holds, and the whole is kept aside.

Runs after the tool and before the settlement, where nothing stops it: the log never holds more than
the limits, and names no output that is not there yet. An output that cannot be kept is still a
success: the model sees both ends of it, and operators see the metric.
"""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from fairlead_eventlog.errors import LogError, LogUnavailable
from fairlead_eventlog.ports import OutputStore
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import FileContent, TextContent, ToolContent, managed_path
from fairlead_service import ids
from fairlead_session.calls.lifecycle import Failed, Outcome
from fairlead_session.calls.output_bounds import (
    MeasuredText,
    OutputLimits,
    kept_marker,
    lossy_marker,
    measure_text,
    preview,
)
from fairlead_tools.calls.execution import error_text, tool_crash
from fairlead_tools.metrics import OUTPUTS_CUT
from fairlead_tools.spool import read_pieces

log = logging.getLogger(__name__)

# How long servers that are away are waited for, and how long one output may take.
RETAIN_S: Final = 30.0
HURRY_S: Final = 2.0
RETRY_S: Final = 0.5
TEXT: Final = "text/plain; charset=utf-8"

Source: TypeAlias = Callable[[], Iterator[bytes]]
"""A text in pieces, from its start each time it is asked for."""


@dataclass(slots=True)
class OutputRetention:
    """Bounds outcomes and keeps what does not fit."""

    outputs: OutputStore
    limits: OutputLimits
    media_bytes_max: int
    patience_s: float = RETAIN_S
    _under_way: set[asyncio.Timeout] = field(default_factory=set)

    def hurry(self) -> None:
        """The worker leaves: a result without its middle is better than none."""
        self.patience_s = HURRY_S
        deadline = asyncio.get_running_loop().time() + HURRY_S
        for timeout in self._under_way:
            timeout.reschedule(deadline)

    async def recordable(
        self, at: Address, outcome: Outcome, *, limits: OutputLimits, spool: Path | None = None
    ) -> Outcome:
        """The outcome as the log may hold it; a defect in here is this call's failure."""
        try:
            return await self.bounded(at, outcome, limits=limits, spool=spool)
        except Exception as error:
            log.exception("output cannot be bounded", extra={"session_id": at.session_id})
            return tool_crash(error_text(error))
        finally:
            if spool is not None:
                await asyncio.to_thread(spool.unlink, missing_ok=True)

    async def bounded(
        self, at: Address, outcome: Outcome, *, limits: OutputLimits | None, spool: Path | None
    ) -> Outcome:
        """The outcome as the log may hold it. A failure is bounded like anything else."""
        limits = limits or self.limits
        if isinstance(outcome, Failed):
            message, _ = await self._text(at, limits, None, outcome.message)
            return outcome if message is None else replace(outcome, message=message)
        texts = tuple(one.text for one in outcome.content if isinstance(one, TextContent))
        bare = not outcome.content and spool is None
        told = (json.dumps(outcome.structured, indent=2, ensure_ascii=False),) if bare else texts
        shown, path = await self._text(at, limits, spool, *told)
        if shown is None:
            begin = () if spool is None else (TextContent(text=await _read(spool)),)
            content = (*begin, *outcome.content)
        else:
            media = (one for one in outcome.content if isinstance(one, FileContent))
            content = (TextContent(text=shown), *media)
        content, references = await self._media(at, content)
        paths = (*(outcome.output_paths or ()), *((path,) if path else ()), *references)
        return replace(outcome, content=content, output_paths=paths or None)

    async def _text(
        self, at: Address, limits: OutputLimits, spool: Path | None, *texts: str
    ) -> tuple[str | None, str | None]:
        """What is shown instead of a text, and where the whole is; nothing if it fits."""
        source = _source(spool, *texts)
        # A spool may be long: it is measured beside the event loop.
        sample = (
            measure_text(source(), limits)
            if spool is None
            else await asyncio.to_thread(lambda: measure_text(source(), limits))
        )
        if sample.fits(limits):
            return None, None
        path = await self._kept(at, source, TEXT)
        return preview(sample, _marker(sample, path), limits), path

    async def _media(
        self, at: Address, content: tuple[ToolContent, ...]
    ) -> tuple[tuple[ToolContent, ...], tuple[str, ...]]:
        """Media as long as there is room for it in the log, by reference beyond that (J-29)."""
        shown: list[ToolContent] = []
        references: list[str] = []
        room = self.media_bytes_max
        for one in content:
            if isinstance(one, TextContent) or len(one.uri) <= room:
                room -= 0 if isinstance(one, TextContent) else len(one.uri)
                shown.append(one)
                continue
            raw = _decoded(one.uri)
            path = await self._kept(at, lambda raw=raw: iter((raw,)), one.mime)  # type: ignore[misc]
            if path is None:
                size = f"{one.mime}, {len(raw):,} bytes"
                shown.append(TextContent(text=f"[media left out: {size}; it could not be kept]"))
            else:
                shown.append(one.model_copy(update={"uri": path}))
                references.append(path)
        return tuple(shown), tuple(references)

    async def _kept(self, at: Address, source: Source, mime: str) -> str | None:
        """Where the whole is from now on; None if it cannot be kept."""
        output_id = ids.output_id()
        try:
            async with self._patiently():
                while True:
                    try:
                        await self.outputs.put(at, output_id, _flow(source), mime=mime)
                    except LogUnavailable:
                        await asyncio.sleep(RETRY_S)
                    else:
                        return managed_path(output_id)
        except (LogError, OSError, TimeoutError) as error:
            OUTPUTS_CUT.inc()
            log.warning("output not kept", extra={"reason": str(error) or type(error).__name__})
            return None

    @asynccontextmanager
    async def _patiently(self) -> AsyncIterator[None]:
        async with asyncio.timeout(self.patience_s) as timeout:
            self._under_way.add(timeout)
            try:
                yield
            finally:
                self._under_way.discard(timeout)


def _source(spool: Path | None, *texts: str) -> Source:
    """All text of a settlement, one after another without a separator: it has one budget (J-26)."""

    def flow() -> Iterator[bytes]:
        if spool is not None:
            yield from read_pieces(spool)
        for text in texts:
            yield text.encode(errors="backslashreplace")

    return flow


async def _flow(source: Source) -> AsyncIterator[bytes]:
    """Pieces, read beside the event loop."""
    flow = source()
    while (piece := await asyncio.to_thread(next, flow, None)) is not None:
        yield piece


def _marker(sample: MeasuredText, path: str | None) -> str:
    return lossy_marker(sample) if path is None else kept_marker(sample, path)


async def _read(spool: Path) -> str:
    return (await asyncio.to_thread(spool.read_bytes)).decode(errors="replace")


def _decoded(uri: str) -> bytes:
    """The bytes of a data URI; of any other URI, the URI."""
    head, comma, body = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        return uri.encode(errors="backslashreplace")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return body.encode(errors="backslashreplace")
