"""Bounds the outcome of a call to what the log may hold, and stores the whole output beside the log.

This runs after the tool and before the settlement, and nothing stops it. The output is stored first,
so the log names no output that is not there. An output that cannot be stored is still a success:
the model sees its start and its end, and a metric counts it.
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
from typing import Final, NamedTuple, TypeAlias

from fairlead_eventlog.errors import LogError, LogUnavailable
from fairlead_eventlog.register_ports import OutputStore
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import FileContent, TextContent, ToolContent, managed_path
from fairlead_service import ids
from fairlead_session.calls.lifecycle import Failed, Outcome, Succeeded
from fairlead_session.calls.output_bounds import (
    OutputLimits,
    kept_marker,
    lossy_marker,
    measure_text,
    preview,
)
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.metrics import OUTPUTS_CUT
from fairlead_tools.quotas import OutputQuota
from fairlead_tools.registry.outcome import error_text, tool_crash
from fairlead_tools.spool import read_pieces

log = logging.getLogger(__name__)

# How long one output may take, an outage of the store included.
STORE_S: Final = 30.0
HURRY_S: Final = CallTimings().store_hurry_s
RETRY_S: Final = 0.5
TEXT_MIME: Final = "text/plain; charset=utf-8"

TextSource: TypeAlias = Callable[[], Iterator[bytes]]
"""Gives a text in pieces. Each call gives it from its start."""


class _Origin(NamedTuple):
    """The session of an output, and the principal for which the output counts."""

    at: Address
    principal: PrincipalName | None


@dataclass(slots=True)
class OutputRetention:
    """Bounds outcomes and stores what does not fit."""

    outputs: OutputStore
    limits: OutputLimits
    media_bytes_max: int
    quota: OutputQuota | None = None
    timeout_s: float = STORE_S
    hurry_s: float = HURRY_S
    retry_s: float = RETRY_S
    _deadlines: set[asyncio.Timeout] = field(default_factory=set)

    def hurry(self) -> None:
        """Shorten all deadlines: the worker leaves, and a cut result is better than none."""
        self.timeout_s = self.hurry_s
        deadline = asyncio.get_running_loop().time() + self.hurry_s
        for timeout in self._deadlines:
            timeout.reschedule(deadline)

    async def bound(
        self,
        at: Address,
        outcome: Outcome,
        *,
        principal: PrincipalName | None = None,
        limits: OutputLimits | None = None,
        spool: Path | None = None,
    ) -> Outcome:
        """The outcome as the log may hold it. Removes the spool. A defect here fails the call."""
        limits, origin = limits or self.limits, _Origin(at, principal)
        try:
            if isinstance(outcome, Failed):
                return await self._bound_failure(origin, outcome, limits)
            return await self._bound_success(origin, outcome, limits, spool)
        except Exception as error:
            log.exception(
                "output cannot be shortened: the call fails", extra={"session_id": at.session_id}
            )
            return tool_crash(error_text(error))
        finally:
            if spool is not None:
                await asyncio.to_thread(spool.unlink, missing_ok=True)

    async def _bound_failure(self, origin: _Origin, failed: Failed, limits: OutputLimits) -> Failed:
        message, _path = await self._bound_text(origin, limits, None, failed.message)
        return failed if message is None else replace(failed, message=message)

    async def _bound_success(
        self, origin: _Origin, succeeded: Succeeded, limits: OutputLimits, spool: Path | None
    ) -> Succeeded:
        texts = tuple(part.text for part in succeeded.content if isinstance(part, TextContent))
        if not succeeded.content and spool is None:
            texts = (json.dumps(succeeded.structured, indent=2, ensure_ascii=False),)
        shown, path = await self._bound_text(origin, limits, spool, *texts)
        if shown is None:
            start = () if spool is None else (TextContent(text=await _read_text(spool)),)
            content = (*start, *succeeded.content)
        else:
            media = (part for part in succeeded.content if isinstance(part, FileContent))
            content = (TextContent(text=shown), *media)
        content, references = await self._bound_media(origin, content)
        paths = (*(succeeded.output_paths or ()), *((path,) if path else ()), *references)
        return replace(succeeded, content=content, output_paths=paths or None)

    async def _bound_text(
        self, origin: _Origin, limits: OutputLimits, spool: Path | None, *texts: str
    ) -> tuple[str | None, str | None]:
        """The text to show instead, and the path of the whole; neither if the text fits."""
        source = _text_source(spool, *texts)
        # A spool may be long, so a thread measures it.
        measured = (
            measure_text(source(), limits)
            if spool is None
            else await asyncio.to_thread(lambda: measure_text(source(), limits))
        )
        if measured.fits(limits):
            return None, None
        path = await self._store(origin, source, TEXT_MIME)
        marker = lossy_marker(measured) if path is None else kept_marker(measured, path)
        return preview(measured, marker, limits), path

    async def _bound_media(
        self, origin: _Origin, content: tuple[ToolContent, ...]
    ) -> tuple[tuple[ToolContent, ...], tuple[str, ...]]:
        """Media stay inline as long as there is room in the log. The others are stored (J-29)."""
        shown: list[ToolContent] = []
        references: list[str] = []
        room = self.media_bytes_max
        for part in content:
            if isinstance(part, TextContent) or len(part.uri) <= room:
                room -= 0 if isinstance(part, TextContent) else len(part.uri)
                shown.append(part)
                continue
            raw = _uri_bytes(part.uri)
            path = await self._store(origin, lambda raw=raw: iter((raw,)), part.mime)  # type: ignore[misc]
            if path is None:
                size = f"{part.mime}, {len(raw):,} bytes"
                shown.append(TextContent(text=f"[media left out: {size}; it could not be kept]"))
            else:
                shown.append(part.model_copy(update={"uri": path}))
                references.append(path)
        return tuple(shown), tuple(references)

    async def _store(self, origin: _Origin, source: TextSource, mime: str) -> str | None:
        """The path of the stored output; None if it cannot be stored in time, or over the quota."""
        at, quota = origin.at, self.quota
        reached = (
            None if quota is None else await quota.find_reached_quota(at.tenant, origin.principal)
        )
        if reached is not None:
            OUTPUTS_CUT.inc()
            extra = {"session_id": at.session_id, "reason": reached.sentence}
            log.warning("quota of outputs reached: the middle of the output is lost", extra=extra)
            return None
        output_id = ids.output_id()
        try:
            async with self._deadline():
                while True:
                    try:
                        pieces = _read_in_thread(source)
                        stored = await self.outputs.put(
                            at, output_id, pieces, mime=mime, principal=origin.principal
                        )
                    except LogUnavailable:
                        await asyncio.sleep(self.retry_s)
                    else:
                        if quota is not None:
                            quota.add(at.tenant, stored.bytes, origin.principal)
                        return managed_path(output_id)
        except (LogError, OSError, TimeoutError) as error:
            OUTPUTS_CUT.inc()
            extra = {"session_id": at.session_id, "reason": error_text(error)}
            log.warning("output cannot be stored: its middle is lost", extra=extra)
            return None

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        async with asyncio.timeout(self.timeout_s) as timeout:
            self._deadlines.add(timeout)
            try:
                yield
            finally:
                self._deadlines.discard(timeout)


def _text_source(spool: Path | None, *texts: str) -> TextSource:
    """All texts of a settlement without a separator: together they have one budget (J-26)."""

    def read() -> Iterator[bytes]:
        if spool is not None:
            yield from read_pieces(spool)
        for text in texts:
            yield text.encode(errors="backslashreplace")

    return read


async def _read_in_thread(source: TextSource) -> AsyncIterator[bytes]:
    pieces = source()
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


async def _read_text(spool: Path) -> str:
    return (await asyncio.to_thread(spool.read_bytes)).decode(errors="replace")


def _uri_bytes(uri: str) -> bytes:
    """The bytes of a data URI. Of any other URI, the URI itself."""
    head, comma, body = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        return uri.encode(errors="backslashreplace")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return body.encode(errors="backslashreplace")
