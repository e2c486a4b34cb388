"""What a turn may cost in commits, wakes and messages. Times are for the bench, counts are for tests."""

import os

import pytest

from fairlead_cli.bench.cost.process_usage import ProcessorUsage, difference, read_usage
from fairlead_cli.bench.cost.report import LoadCost, loads, measure
from fairlead_cli.bench.cost.run import open_target

UNITS = 40
# Heartbeats and idle pulls come on top of a turn's own messages, and more of them on a slow machine.
TEXT_MESSAGES_MAX = 35
TOOL_MESSAGES_MAX = 60
# The projector gathers the commits of all shards. Its other tasks ask Postgres eight times a second.
TEXT_TRANSACTIONS_MAX = 3
TOOL_TRANSACTIONS_MAX = 6


@pytest.mark.integration
async def test_a_turn_costs_no_more_commits_wakes_and_messages_than_it_needs() -> None:
    """A text turn: admission, boundary, answer with release. A tool turn: the call's commits on top."""
    async with open_target() as (stack, target):
        costs: dict[str, LoadCost] = {}
        for name in ("text turn", "tool turn"):
            costs[name] = await measure(stack, target, name, loads()[name], units=UNITS)

    text, tool = costs["text turn"], costs["tool turn"]
    assert (round(text.each("commits"), 1), round(text.each("wakes"), 1)) == (3.0, 1.0)
    assert text.each("messages_in") <= TEXT_MESSAGES_MAX
    assert text.each("transactions") <= TEXT_TRANSACTIONS_MAX
    assert (round(tool.each("commits"), 1), round(tool.each("requests"), 1)) == (6.0, 1.0)
    assert tool.each("messages_in") <= TOOL_MESSAGES_MAX
    assert tool.each("transactions") <= TOOL_TRANSACTIONS_MAX
    assert all(text.cpu_ms(name) > 0 for name in ("nats", "postgres", "runner", "gateway"))


def test_the_usage_of_a_process_grows_with_its_work() -> None:
    before = read_usage({"here": [os.getpid()]})
    total = sum(number * number for number in range(300_000))
    after = read_usage({"here": [os.getpid()], "nobody": []})

    used = difference(before, after)
    assert total > 0
    assert used["here"].cpu_ms > 1
    assert used["nobody"] == ProcessorUsage()
