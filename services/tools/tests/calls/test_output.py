"""Long outputs: what the settlement holds, and where the whole is stored; on the twin."""

import asyncio
import base64
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pydantic import BaseModel
from typing_extensions import override

from fairlead_eventlog.errors import LogUnavailable, StreamMissing
from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_eventlog.register_ports import StoredOutput
from fairlead_schema.events import InterruptRequested, SessionPurged, ToolFailed, ToolSucceeded
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import FileContent, RetryClass, TextContent, managed_id
from fairlead_session.calls.lifecycle import Failed, Succeeded
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.outputs import ManagedOutputs, open_output_file, stream_output
from fairlead_tools.registry.tool import CallContext, CallFailed, Result
from fairlead_tools.spool import END_BYTES, Spool
from services.tools.tests.conftest import (
    AT,
    EchoInput,
    EchoOutput,
    Harness,
    run_worker,
    tool,
    wait_until,
)

SMALL = OutputLimits(lines=10, bytes=300)
LONG = "\n".join(f"line {number}" for number in range(100))


class UnavailableOutputs(MemoryOutputs):
    """A store that is unavailable a few times, or always."""

    def __init__(self, times: int | None, error: type[Exception] = LogUnavailable) -> None:
        super().__init__()
        self._times = times
        self._error = error

    @override
    async def put(
        self,
        at: Address,
        output_id: str,
        pieces: AsyncIterator[bytes],
        *,
        mime: str,
        principal: PrincipalName | None = None,
    ) -> StoredOutput:
        if self._times != 0:
            self._times = None if self._times is None else self._times - 1
            raise self._error("away")
        return await super().put(at, output_id, pieces, mime=mime, principal=principal)


def retention(outputs: MemoryOutputs, media: int = 1000) -> OutputRetention:
    return OutputRetention(outputs, SMALL, media)


def texts(outcome: Any) -> list[str]:  # noqa: ANN401
    assert isinstance(outcome, Succeeded)
    return [part.text for part in outcome.content if isinstance(part, TextContent)]


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def lossy() -> float:
    return REGISTRY.get_sample_value("fairlead_tool_output_lossy_total") or 0


async def whole(outputs: MemoryOutputs, path: str) -> bytes:
    pieces = await stream_output(outputs, "default", path)
    assert pieces is not None
    return b"".join([piece async for piece in pieces])


async def bound(
    outputs: MemoryOutputs,
    outcome: Succeeded,
    spool: Path | None = None,
    timeout_s: float = 5.0,
) -> Succeeded:
    limited = replace(retention(outputs), timeout_s=timeout_s, retry_s=0.0)
    result = await limited.bound(AT, outcome, spool=spool)
    assert isinstance(result, Succeeded)
    return result


async def test_what_fits_stays_as_it_is() -> None:
    """J-24, J-25: no marker, no path, nothing kept."""
    outputs = MemoryOutputs()
    content = (TextContent(text="x" * 300),)
    outcome = Succeeded(structured={"n": 1}, content=content)

    assert await bound(outputs, outcome) == outcome
    assert outputs.outputs == {}


async def test_all_texts_have_one_budget_and_become_one_preview() -> None:
    """J-26, J-27, J-29, J-30: joined without a separator; structured and media are not measured."""
    outputs = MemoryOutputs()
    media = FileContent(uri="data:image/png;base64,AAAA", mime="image/png")
    parts = (TextContent(text="a" * 200), media, TextContent(text="b" * 200))
    structured = {"large": "y" * 10_000}

    result = await bound(outputs, Succeeded(structured=structured, content=parts))

    (path,) = result.output_paths or ()
    (preview,) = texts(result)
    assert result.structured == structured
    assert result.content == (TextContent(text=preview), media)
    assert preview.startswith("aaa")
    assert preview.endswith("bbb")
    assert f"read or grep {path} for the whole" in preview
    assert len(preview.encode()) <= SMALL.bytes
    assert await whole(outputs, path) == b"a" * 200 + b"b" * 200
    assert await retention(outputs).bound(AT, result) == result


async def test_without_content_the_value_itself_is_measured() -> None:
    """J-22, J-28: as indented JSON. A long value gets a preview and stays complete."""
    outputs = MemoryOutputs()
    structured = {"é": ["line"] * 50}

    result = await bound(outputs, Succeeded(structured=structured))

    assert result.structured == structured
    (preview,) = texts(result)
    assert preview.startswith('{\n  "é": [\n    "line"')
    assert (await bound(outputs, Succeeded(structured={"n": 1}))).content == ()


async def test_a_tool_may_have_limits_of_its_own(harness: Harness) -> None:
    """J-24: other tools have the configured limits."""

    async def run(_request: EchoInput, _context: CallContext) -> Result:
        return Result(EchoOutput(said="x"), content=(TextContent(text=LONG),))

    plain, wide = tool("plain", execute=run), tool("wide", execute=run, limits=OutputLimits())
    harness.settings = harness.settings.model_copy(
        update={"output_lines_max": 10, "output_bytes_max": 300}
    )
    for limited in (plain, wide):
        harness.registry.register(limited)
        await harness.call(limited, id_=limited.name)
    await harness.serve_all()

    settled = {e.call_id: e for e in await harness.events() if isinstance(e, ToolSucceeded)}
    assert settled["wide"].content == (TextContent(text=LONG),)
    assert settled["wide"].output_paths is None
    (path,) = settled["plain"].output_paths or ()
    assert isinstance(harness.eventlog.outputs, MemoryOutputs)
    assert await whole(harness.eventlog.outputs, path) == LONG.encode()


async def test_errors_are_bounded_too(harness: Harness) -> None:
    """J-36: decided so: a long error would fill the log and the model's window too."""

    async def run(_request: EchoInput, _context: CallContext) -> EchoOutput:
        raise CallFailed("e" * 200_000)

    failing_tool = tool(execute=run)
    harness.registry.register(failing_tool)
    await harness.call(failing_tool)

    (message,) = await harness.serve_all()

    assert len(message.encode()) <= 51_200
    assert "read or grep fairlead-output:/out_" in message


async def test_what_cannot_be_kept_is_a_success_without_a_path() -> None:
    """Q-05, J-33: decided against a failure: the middle is lost, and the metric counts it."""
    media = FileContent(uri="data:image/png;base64," + "A" * 2000, mime="image/png")
    for outputs in (UnavailableOutputs(None), UnavailableOutputs(None, StreamMissing)):
        before = lossy()

        result = await bound(
            outputs, Succeeded(content=(TextContent(text=LONG), media)), timeout_s=0.05
        )

        assert result.output_paths is None
        preview, left_out = texts(result)
        assert "the rest could not be kept" in preview
        assert "media left out: image/png" in left_out
        assert lossy() == before + 2


async def test_a_store_that_comes_back_in_time_keeps_it() -> None:
    """J-33: a short outage costs nothing."""
    outputs = UnavailableOutputs(3)

    result = await bound(outputs, Succeeded(content=(TextContent(text=LONG),)))

    (path,) = result.output_paths or ()
    assert await whole(outputs, path) == LONG.encode()


async def test_media_beyond_a_size_go_by_reference() -> None:
    """J-23, J-29: media stay inline while there is room; the others are stored with their type."""
    outputs = MemoryOutputs()
    raw = b"\x89PNG" + bytes(1000)
    uri = f"data:image/png;base64,{base64.b64encode(raw).decode()}"
    small = FileContent(uri="data:image/png;base64,AAAA", mime="image/png")
    large = FileContent(uri=uri, mime="image/png", name="shot.png")

    result = await bound(outputs, Succeeded(content=(small, large)))

    (path,) = result.output_paths or ()
    assert result.content == (small, large.model_copy(update={"uri": path}))
    id_ = managed_id(path)
    assert id_ is not None
    assert outputs.outputs["default", id_] == (raw, "image/png")


async def test_a_spool_comes_before_the_other_texts_and_is_removed(
    harness: Harness, tmp_path: Path
) -> None:
    """J-26: inline if it fits, else stored from its file. The settlement removes the file."""

    class Nothing(BaseModel):
        pass

    async def run(request: EchoInput, _context: CallContext) -> Result:
        spool = Spool(tmp_path, 10_000_000)
        spool.write(request.key.encode() * 40_000)
        spool.write(b"\xff")
        spool.close()
        return Result(Nothing(), content=(TextContent(text="\nstatus"),), spool=spool.path)

    spooling_tool = tool(execute=run, output=Nothing)
    harness.registry.register(spooling_tool)
    await harness.call(spooling_tool, id_="short", key="x")
    await harness.call(spooling_tool, id_="long", key="xyz")
    await harness.serve_all()

    settled = {e.call_id: e for e in await harness.events() if isinstance(e, ToolSucceeded)}
    assert settled["short"].content == (
        TextContent(text="x" * 40_000 + "\ufffd"),
        TextContent(text="\nstatus"),
    )
    (preview,) = settled["long"].content
    assert isinstance(preview, TextContent)
    assert preview.text.endswith("\ufffd\nstatus")
    (path,) = settled["long"].output_paths or ()
    assert isinstance(harness.eventlog.outputs, MemoryOutputs)
    assert (await whole(harness.eventlog.outputs, path)).endswith(b"xyz\xff\nstatus")
    assert files_in(tmp_path) == []


async def test_an_interrupt_while_the_output_is_kept_does_not_lose_the_result(
    harness: Harness,
) -> None:
    """Q-16, E-18, J-34: decided so: nothing stops the worker between storing and settling."""

    class Interrupting(MemoryOutputs):
        @override
        async def put(
            self,
            at: Address,
            output_id: str,
            pieces: AsyncIterator[bytes],
            *,
            mime: str,
            principal: PrincipalName | None = None,
        ) -> StoredOutput:
            assert await harness.settlements() == []
            await harness.write(InterruptRequested())
            return await super().put(at, output_id, pieces, mime=mime, principal=principal)

    async def run(_request: EchoInput, _context: CallContext) -> Result:
        return Result(EchoOutput(said="x"), content=(TextContent(text=LONG * 1000),))

    harness.eventlog = replace(harness.eventlog, outputs=Interrupting())
    echo_tool = tool(execute=run)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    await harness.serve_all()

    (settled,) = [e for e in await harness.events() if isinstance(e, ToolSucceeded | ToolFailed)]
    assert isinstance(settled, ToolSucceeded)
    assert settled.output_paths


@pytest.mark.parametrize("retry", ["once", "pure"])
@pytest.mark.parametrize("erased", [False, True])
async def test_an_output_that_comes_after_its_sessions_purge_is_not_kept(
    harness: Harness, retry: RetryClass, *, erased: bool
) -> None:
    """H-29, J-35: the purge did not know of the output; a pure call may not have begun."""

    class Purging(MemoryOutputs):
        @override
        async def put(
            self,
            at: Address,
            output_id: str,
            pieces: AsyncIterator[bytes],
            *,
            mime: str,
            principal: PrincipalName | None = None,
        ) -> StoredOutput:
            await harness.write(SessionPurged())
            if erased:
                await harness.log.erase(at)
            await self.remove_all(at)
            return await super().put(at, output_id, pieces, mime=mime, principal=principal)

    async def run(_request: EchoInput, _context: CallContext) -> Result:
        return Result(EchoOutput(said="x"), content=(TextContent(text=LONG * 1000),))

    outputs = Purging()
    harness.eventlog = replace(harness.eventlog, outputs=outputs)
    echo_tool = tool(execute=run, retry=retry)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)

    assert await harness.serve_all() == []
    assert outputs.outputs == {}


async def test_a_hundred_megabytes_pass_in_constant_memory(tmp_path: Path) -> None:
    """J-26, J-30: spooled, measured and stored piece by piece."""

    class Counting(MemoryOutputs):
        size = 0

        @override
        async def put(
            self,
            at: Address,
            output_id: str,
            pieces: AsyncIterator[bytes],
            *,
            mime: str,
            principal: PrincipalName | None = None,
        ) -> StoredOutput:
            async for piece in pieces:
                self.size += len(piece)
            return StoredOutput(self.size, mime)

    outputs, size = Counting(), 100 * 1024 * 1024
    tracemalloc.start()
    try:
        spool = Spool(tmp_path, size * 2)
        for _ in range(size // 65_536):
            spool.write(b"x" * 65_535 + b"\n")
        spool.close()
        result = await bound(outputs, Succeeded(), spool=spool.path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert outputs.size == size
    assert result.output_paths
    assert peak < 4 * 1024 * 1024


def test_a_spool_keeps_its_start_and_its_end_and_counts_the_rest(tmp_path: Path) -> None:
    """L-55: a gigabyte costs no more than the limit, on disk and in memory."""
    tracemalloc.start()
    try:
        spool = Spool(tmp_path, 2 * END_BYTES)
        spool.write(b"the start")
        for _ in range(1024):
            spool.write(b"x" * (1024 * 1024))
        spool.write(b"the end")
        spool.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    content = spool.path.read_bytes()
    assert spool.bytes == 1024 * 1024 * 1024 + 16
    assert spool.dropped_bytes == spool.bytes - 2 * END_BYTES
    assert content.startswith(b"the start")
    assert content.endswith(b"the end")
    assert f"[... {spool.dropped_bytes:,} bytes dropped ...]".encode() in content
    assert peak < 4 * 1024 * 1024
    spool.remove()


def test_a_full_disk_is_a_limit_like_any_other() -> None:
    """L-55: the spool counts the bytes that do not fit, and keeps the end in memory."""
    spool = Spool(Path("/tmp"), 10_000_000)  # noqa: S108
    spool._file.close()  # noqa: SLF001
    spool._file = open("/dev/full", "wb", buffering=0)  # noqa: SLF001, SIM115, PTH123
    spool.write(b"x" * (END_BYTES + 100))
    spool.close()

    assert spool.dropped_bytes == 100
    spool.remove()


async def test_tools_read_a_managed_output_as_a_file(tmp_path: Path) -> None:
    """J-30: for the time of a block. Paths of other tenants and unknown paths give None."""
    outputs = MemoryOutputs()
    result = await bound(outputs, Succeeded(content=(TextContent(text=LONG),)))
    (path,) = result.output_paths or ()

    async with open_output_file(outputs, "default", path, directory=tmp_path) as file:
        assert file is not None
        assert file.read_text() == LONG
    assert files_in(tmp_path) == []
    assert ManagedOutputs().is_managed(path)
    assert not ManagedOutputs().is_managed("/tmp/out_1")  # noqa: S108
    for tenant, other in (
        ("other", path),
        ("default", f"{path}x"),
        ("default", "notes.txt"),
        ("default", "fairlead-output:/../etc/passwd"),
    ):
        async with open_output_file(outputs, tenant, other, directory=tmp_path) as no_file:
            assert no_file is None


async def test_a_failure_is_not_longer_than_a_success() -> None:
    """J-36: a short failure stays as it is."""
    short = Failed("no such file")

    assert await retention(MemoryOutputs()).bound(AT, short) is short


async def test_a_leaving_worker_settles_what_it_cannot_keep_in_time(harness: Harness) -> None:
    """J-33, E-18: the store hangs while the worker leaves: the result is settled without a path."""
    harness.timings = CallTimings(store_hurry_s=0.05)
    is_hanging = asyncio.Event()

    class Hanging(MemoryOutputs):
        @override
        async def put(
            self,
            at: Address,
            output_id: str,
            pieces: AsyncIterator[bytes],
            *,
            mime: str,
            principal: PrincipalName | None = None,
        ) -> StoredOutput:
            is_hanging.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def run(_request: EchoInput, _context: CallContext) -> Result:
        return Result(EchoOutput(said="x"), content=(TextContent(text=LONG * 1000),))

    harness.eventlog = replace(harness.eventlog, outputs=Hanging())
    echo_tool = tool(execute=run)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool)
    async with run_worker(harness.worker()):
        await wait_until(is_hanging.is_set)

    event = (await harness.events())[-1]
    assert isinstance(event, ToolSucceeded)
    assert event.output_paths is None
