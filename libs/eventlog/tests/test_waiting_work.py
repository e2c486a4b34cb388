"""How long work waits in its queues, as an autoscaler needs to know."""

from datetime import UTC, datetime

import pytest

from fairlead_eventlog.condition.waiting_work import QueueAge, parse_time
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.pull import fetch_waiting
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import TOOLS, WAKES, WAKES_CONSUMER, tools_consumer
from fairlead_testing.nats import Server


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-11-18T08:00:00Z", 0),
        ("2026-11-18T08:00:00.123456789Z", 123_456),
        ("2026-11-18T08:00:00.5Z", 500_000),
    ],
)
def test_the_times_of_the_server_are_read_to_the_microsecond(text: str, micros: int) -> None:
    expected = datetime(2026, 11, 18, 8, tzinfo=UTC).timestamp() + micros / 1e6

    assert parse_time(text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.integration
async def test_each_queue_says_how_much_waits_and_since_when(own_server: Server) -> None:
    """The requests of another pool do not count, and neither does what somebody has taken."""
    await provision(own_server.address, pools=("default", "gpu"))
    async with (
        open_link(own_server.address, name="test") as link,
        connect(own_server.address, name="test") as eventlog,
    ):
        await link.store("fairlead.wake.default.1.ses_1", b"{}")
        await link.store("fairlead.tool.gpu.default.ses_1", b"{}")
        await link.store("fairlead.tool.gpu.default.ses_2", b"{}")
        before = by_consumer(await eventlog.waiting_work.read_all())

        [_taken] = await fetch_waiting(link, WAKES.name, WAKES_CONSUMER, 1)
        after = by_consumer(await eventlog.waiting_work.read_all())

    assert before[WAKES_CONSUMER].waiting == 1
    assert before[tools_consumer("default")].waiting == 0
    gpu = before[tools_consumer("gpu")]
    assert (gpu.stream, gpu.waiting) == (TOOLS.name, 2)
    assert 0 <= gpu.oldest_age_s < 60
    assert after[WAKES_CONSUMER] == QueueAge(WAKES.name, WAKES_CONSUMER, 0, 0.0)
    assert after["ingest"].oldest_age_s == 0


def by_consumer(ages: tuple[QueueAge, ...]) -> dict[str, QueueAge]:
    return {age.consumer: age for age in ages}
