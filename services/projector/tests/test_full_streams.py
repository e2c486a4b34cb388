"""The projector warns of a stream that is nearly full, once, and well before it refuses. FINDINGS A10."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from fairlead_eventlog.condition.stream_sizes import StreamSize
from fairlead_eventlog.errors import SubjectRefused
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_projector.alarms.full_streams import watch_streams


class Sizes:
    """Answers with one round of sizes after the other, then waits for ever."""

    def __init__(self, *rounds: int) -> None:
        self._rounds = list(rounds)
        self.is_over = asyncio.Event()

    async def read_all(self) -> tuple[StreamSize, ...]:
        if not self._rounds:
            self.is_over.set()
            await asyncio.Event().wait()
        return (StreamSize("LOG-0", self._rounds.pop(0), 100), StreamSize("EVENTS", 10**9, 0))


async def watch(*rounds: int) -> None:
    sizes = Sizes(*rounds)
    eventlog = replace(memory_eventlog(), stream_sizes=sizes)
    task = asyncio.create_task(watch_streams(eventlog, interval_s=0))
    async with asyncio.timeout(5):
        await sizes.is_over.wait()
    task.cancel()


@pytest.mark.parametrize(
    ("rounds", "warnings"),
    [((79, 79), 0), ((80,), 1), ((85, 90, 99), 1), ((85, 10, 85), 2)],
)
async def test_a_stream_that_fills_is_warned_of_once(
    rounds: tuple[int, ...], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A10: the line names the cure. A stream without a limit is never full."""
    await watch(*rounds)

    lines = [record for record in caplog.records if "nearly full" in record.message]
    assert len(lines) == warnings
    assert {vars(line)["stream"] for line in lines} <= {"LOG-0"}
    assert all("fairlead provision" in line.message for line in lines)


async def test_grants_of_an_earlier_release_do_not_make_the_projector_unready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rolling upgrade may come before the new grants: the watch says so and rests."""
    healthy = asyncio.Event()

    class Refused:
        async def read_all(self) -> tuple[StreamSize, ...]:
            raise SubjectRefused("STREAM.INFO.EVENTS")

    eventlog = replace(memory_eventlog(), stream_sizes=Refused())
    task = asyncio.create_task(watch_streams(eventlog, on_healthy=healthy.set))
    async with asyncio.timeout(5):
        await healthy.wait()
    task.cancel()

    assert "fairlead provision --nats-auth" in caplog.text


async def test_the_sizes_are_metrics() -> None:
    await watch(42)

    labels = {"stream": "LOG-0"}
    assert REGISTRY.get_sample_value("fairlead_stream_bytes", labels) == 42
    assert REGISTRY.get_sample_value("fairlead_stream_bytes_max", labels) == 100
