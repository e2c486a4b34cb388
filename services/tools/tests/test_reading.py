"""Sources that hang or crash: bounded, unavailable, and nobody is sent after a thread that is stuck."""

import asyncio
from threading import Event

import pytest

from fairlead_schema.context import Observation, Observed, Unavailable
from fairlead_tools.metrics import AWAY
from fairlead_tools.reading import Reading
from fairlead_tools.sources.files import Unreadable

FINE = Observed(key="core/a", value=1, baseline="b", update="u")


def count(why: str) -> float:
    counted: float = AWAY.labels("core/a", why)._value.get()  # noqa: SLF001 - no other way
    return counted


async def test_a_source_that_hangs_is_unavailable_until_it_lets_go() -> None:
    """F-10: the loop goes on, one thread waits, and a second one is not spent."""
    reading, released, begun = Reading(0.05), Event(), 0

    def hang() -> Observation:
        nonlocal begun
        begun += 1
        released.wait(20)
        return FINE

    before = count("timeout")
    first, second = [await reading.source("core/a", "/w", hang) for _ in range(2)]
    elsewhere = await reading.source("core/a", "/other", lambda: FINE)
    released.set()
    last: Observation | None = first
    async with asyncio.timeout(20):
        while last != FINE:
            await asyncio.sleep(0.01)
            last = await reading.source("core/a", "/w", lambda: FINE)

    assert isinstance(first, Unavailable)
    assert isinstance(second, Unavailable)
    assert (first.why, second.why, begun) == ("timeout", "timeout", 1)
    assert count("timeout") >= before + 2
    assert (elsewhere, last) == (FINE, FINE)


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
    """F-17, F-22: a defect of one source is told, and breaks neither the sample nor the session."""

    def fail() -> Observation:
        raise error

    found = await Reading(1).source("core/a", "/w", fail)

    assert isinstance(found, Unavailable)
    assert found.why == why
    assert found.reason


async def test_a_hung_source_that_fails_at_last_is_forgotten() -> None:
    """F-10: its error has nobody left to tell."""
    reading, released = Reading(0.05), Event()

    def fail() -> Observation:
        released.wait(20)
        raise OSError("late")

    assert isinstance(await reading.source("core/a", "/w", fail), Unavailable)
    released.set()
    async with asyncio.timeout(20):
        while await reading.source("core/a", "/w", lambda: FINE) != FINE:
            await asyncio.sleep(0.01)
