"""What a turn may cost in commits, wakes and messages. Times are for the bench, counts are for tests."""

import os

import pytest

from fairlead_cli.bench.cost.process_usage import ProcessorUsage, difference, read_usage
from fairlead_cli.bench.cost.report import LoadCost, loads, measure
from fairlead_cli.bench.cost.run import open_target
from fairlead_cli.bench.cost.server_counts import count_published
from fairlead_cli.bench.memory.resident import read_memory
from fairlead_cli.bench.memory.soak import MemorySample, MemorySoak

UNITS = 40
WARM = 16
INGEST = "fairlead-ingest"
# Heartbeats and idle pulls come on top of a turn's own messages, and more of them on a slow machine.
TEXT_MESSAGES_MAX = 30
TOOL_MESSAGES_MAX = 52
# The projector gathers the commits of all shards. Its other tasks ask Postgres eight times a second.
TEXT_TRANSACTIONS_MAX = 3
TOOL_TRANSACTIONS_MAX = 6
# Of an admission the append, of a turn its wake too, and what is left is idle work and sessions to create.
INGEST_PUBLISHES_MAX = {"admission": 1.7, "text turn": 3.3}


@pytest.mark.integration
async def test_a_turn_costs_no_more_commits_wakes_and_messages_than_it_needs() -> None:
    """A text turn: admission, boundary, answer with release. A tool turn: the call's commits on top.

    Ingest follows the sessions, so it reads nothing before it appends.
    """
    async with open_target() as (stack, target):
        costs: dict[str, LoadCost] = {}
        published: dict[str, float] = {}
        for name in ("admission", "text turn", "tool turn"):
            before = await count_published(stack.monitor, INGEST)
            costs[name] = await measure(stack, target, name, loads()[name], units=UNITS)
            after = await count_published(stack.monitor, INGEST)
            published[name] = (after - before) / (UNITS + WARM)

    text, tool = costs["text turn"], costs["tool turn"]
    assert (round(text.each("commits"), 1), round(text.each("wakes"), 1)) == (3.0, 1.0)
    assert text.each("messages_in") <= TEXT_MESSAGES_MAX
    assert text.each("transactions") <= TEXT_TRANSACTIONS_MAX
    assert (round(tool.each("commits"), 1), round(tool.each("requests"), 1)) == (6.0, 1.0)
    assert tool.each("messages_in") <= TOOL_MESSAGES_MAX
    assert tool.each("transactions") <= TOOL_TRANSACTIONS_MAX
    assert all(published[name] <= most for name, most in INGEST_PUBLISHES_MAX.items()), published
    assert all(text.cpu_ms(name) > 0 for name in ("nats", "postgres", "runner", "gateway"))


def test_the_usage_of_a_process_grows_with_its_work() -> None:
    before = read_usage({"here": [os.getpid()]})
    total = sum(number * number for number in range(300_000))
    after = read_usage({"here": [os.getpid()], "nobody": []})

    used = difference(before, after)
    assert total > 0
    assert used["here"].cpu_ms > 1
    assert used["nobody"] == ProcessorUsage()


def test_the_growth_of_memory_leaves_out_the_warm_up() -> None:
    soak = MemorySoak(100, [MemorySample(0, {"runner-0": 50.0}, None)])
    soak.samples += [
        MemorySample(turns, {"runner-0": rss}, 300.0)
        for turns, rss in ((20, 100.0), (60, 104.0), (100, 105.0))
    ]

    assert soak.growth("runner-0") == 1.05
    assert soak.to_json()["growth"] == {"runner-0": 1.05}


def test_the_memory_of_this_process_is_read() -> None:
    memory = read_memory(os.getpid())

    assert memory.rss > 10
    assert memory.pss is not None
    assert 0 < memory.pss <= memory.rss
