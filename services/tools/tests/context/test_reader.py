"""Sources that hang or crash become unavailable, and hold up at most one thread."""

import asyncio
from threading import Event

import pytest

from fairlead_schema.context import Observation, ObservedSource, UnavailableSource
from fairlead_tools.context import reader as reading_module
from fairlead_tools.context.reader import ReadSource, SourceReader
from fairlead_tools.context.sources.files import Unreadable
from fairlead_tools.metrics import SOURCES_UNAVAILABLE

FINE = ObservedSource(key="core/a", value=1, baseline="b", update="u")


def unavailable_count(why: str) -> float:
    value: float = SOURCES_UNAVAILABLE.labels("core/a", why)._value.get()  # noqa: SLF001 - no other way
    return value


async def read_source_a(
    reader: SourceReader, read_source: ReadSource, place: str = "/w"
) -> Observation | None:
    return (await reader.read_sources(place, {"core/a": read_source}))["core/a"]


async def test_a_source_that_hangs_is_unavailable_until_it_lets_go() -> None:
    """P-15, F-10: the event loop goes on, and only one thread waits for the source."""
    reader, release, runs = SourceReader(0.05), Event(), 0

    def hang() -> Observation:
        nonlocal runs
        runs += 1
        release.wait(20)
        return FINE

    before = unavailable_count("timeout")
    first, second = [await read_source_a(reader, hang) for _ in range(2)]
    elsewhere = await read_source_a(reader, lambda: FINE, "/other")
    release.set()
    last: Observation | None = first
    async with asyncio.timeout(20):
        while last != FINE:
            await asyncio.sleep(0.01)
            last = await read_source_a(reader, lambda: FINE)

    assert isinstance(first, UnavailableSource)
    assert isinstance(second, UnavailableSource)
    assert (first.why, second.why, runs) == ("timeout", "timeout", 1)
    assert unavailable_count("timeout") >= before + 2
    assert elsewhere == FINE


async def test_a_source_that_hangs_holds_the_others_up_only_once() -> None:
    """F-10: the sources before it count at once, those after it from the next read on."""
    reader, release = SourceReader(0.05), Event()
    later = FINE.model_copy(update={"key": "core/c"})

    def hang() -> Observation:
        release.wait(20)
        return FINE

    reads: dict[str, ReadSource] = {"core/a": lambda: FINE, "core/b": hang, "core/c": lambda: later}
    first = await reader.read_sources("/w", reads)
    second = await reader.read_sources("/w", reads)
    release.set()

    assert first["core/a"] == FINE
    assert isinstance(first["core/b"], UnavailableSource)
    assert isinstance(first["core/c"], UnavailableSource)
    assert (second["core/a"], second["core/c"]) == (FINE, later)
    assert isinstance(second["core/b"], UnavailableSource)


async def test_without_a_free_thread_nothing_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-10: a place without a thread is unavailable and is read the next time."""
    monkeypatch.setattr(reading_module, "THREADS_MAX", 1)
    reader, release = SourceReader(0.05), Event()

    def hang() -> Observation:
        release.wait(20)
        return FINE

    assert isinstance(await read_source_a(reader, hang, "/hung"), UnavailableSource)
    assert isinstance(await read_source_a(reader, lambda: FINE), UnavailableSource)
    release.set()
    async with asyncio.timeout(20):
        while await read_source_a(reader, lambda: FINE) != FINE:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Unreadable("outside", "out"), "outside"),
        (OSError(5, "Input/output error"), "unreadable"),
        (RuntimeError("a defect"), "defect"),
        (RuntimeError(), "defect"),
    ],
)
async def test_whatever_a_source_raises_is_its_reason(error: Exception, why: str) -> None:
    """F-17, F-22: a defect in one source has a reason and breaks neither sample nor session."""

    def fail() -> Observation:
        raise error

    observation = await read_source_a(SourceReader(1), fail)

    assert isinstance(observation, UnavailableSource)
    assert observation.why == why
    assert observation.reason
