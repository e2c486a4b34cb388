"""Measures what the capacity of a deployment is computed from, on a stack of its own."""

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from string import ascii_lowercase
from typing import Final

from fairlead_cli.bench.capacity.store_sizes import StoreSizes, read_store_sizes
from fairlead_cli.bench.cost.idleness import wait_until_idle
from fairlead_cli.bench.cost.loads import (
    Act,
    LoadTarget,
    open_text_turns,
    open_tool_turns,
    open_turns,
)
from fairlead_cli.bench.cost.report import WARM_UNITS, LoadCost, OpenLoad, measure
from fairlead_cli.bench.cost.run import open_target
from fairlead_cli.bench.memory.soak import take_sample
from fairlead_cli.embedded.running_stack import RunningStack

FRAGMENTS: Final = 200
DELAY_MS: Final = 10
# The prompt has the text too: it tells the simulated provider what to answer.
LONG_TEXT_BYTES: Final = 16_000

TEXT, TOOL, STREAMED, LONG = "text turn", "tool turn", "streamed turn", "long turn"


async def run_capacity(*, scale: float, progress: Callable[[str], None]) -> dict[str, float]:
    """Start a stack, measure each load, stop the stack. Gives the figures by their names."""
    units = max(20, int(300 * scale))
    loads: dict[str, tuple[OpenLoad, int]] = {
        TEXT: (open_text_turns, units),
        TOOL: (open_tool_turns, units),
        STREAMED: (_open_streamed_turns, max(16, units // 5)),
        LONG: (_open_long_turns, max(16, units // 5)),
    }
    costs: dict[str, LoadCost] = {}
    stored: dict[str, StoreSizes] = {}
    progress("starting the stack")
    async with open_target() as (stack, target):
        resting = take_sample(stack, 0).pss or 0.0
        for name, (open_load, count) in loads.items():
            progress(name)
            costs[name], stored[name] = await _measure(stack, target, name, open_load, count)
    figures = {"services at rest, MiB": resting}
    return figures | _processor_figures(costs) | _stored_figures(stored, costs)


async def _measure(
    stack: RunningStack, target: LoadTarget, name: str, open_load: OpenLoad, units: int
) -> tuple[LoadCost, StoreSizes]:
    """The cost of a load, and the bytes that stay of it."""
    before = await read_store_sizes(stack.monitor, stack.postgres_admin)
    cost = await measure(stack, target, name, open_load, units=units)
    await wait_until_idle(stack)
    after = await read_store_sizes(stack.monitor, stack.postgres_admin)
    return cost, after.minus(before)


def _processor_figures(costs: dict[str, LoadCost]) -> dict[str, float]:
    """Milliseconds of a text turn, of a call with the step after it, and microseconds of a fragment."""
    text, tool, streamed = costs[TEXT], costs[TOOL], costs[STREAMED]
    figures: dict[str, float] = {}
    for process in text.usage:
        figures[f"text turn, {process}, ms"] = text.cpu_ms(process)
    for process in text.usage:
        figures[f"call and next step, {process}, ms"] = tool.cpu_ms(process) - text.cpu_ms(process)
    for process in text.usage:
        more_ms = streamed.cpu_ms(process) - text.cpu_ms(process)
        figures[f"fragment, {process}, µs"] = more_ms * 1000 / (FRAGMENTS - 1)
    return figures


def _stored_figures(stored: dict[str, StoreSizes], costs: dict[str, LoadCost]) -> dict[str, float]:
    """Bytes of a short turn, of a call, and for each byte of text, by store."""
    # The turns of the warm-up are stored too.
    units = {name: cost.units + WARM_UNITS for name, cost in costs.items()}
    figures: dict[str, float] = {}
    for store in StoreSizes._fields:
        short, tool, long = (
            getattr(stored[name], store) / units[name] for name in (TEXT, TOOL, LONG)
        )
        figures[f"text turn, {store}, bytes"] = short
        figures[f"call and next step, {store}, bytes"] = tool - short
        figures[f"byte of text, {store}, bytes"] = (long - short) / LONG_TEXT_BYTES
    return figures


async def _open_streamed_turns(target: LoadTarget, stack: AsyncExitStack) -> Act:
    """A prompt whose answer comes as many reads, as from a real provider, to a live client."""
    prompt = partial(_paced_prompt, fragments=FRAGMENTS, delay_ms=DELAY_MS)
    return await open_turns(target, stack, prompt, ends=1, stream="stream")


async def _open_long_turns(target: LoadTarget, stack: AsyncExitStack) -> Act:
    """A prompt that is answered by some kilobytes in one write."""
    return await open_turns(target, stack, _long_prompt, ends=1)


def _paced_prompt(number: int, *, fragments: int, delay_ms: int) -> str:
    words = " ".join(["word"] * fragments)
    return f"turn {number} [[sim: chunks={fragments} delay_ms={delay_ms} answer='{words}']]"


def _long_prompt(number: int) -> str:
    """Words that are not alike, because Postgres compresses what repeats itself."""
    letters = random.Random(number).choices(ascii_lowercase + "  ", k=LONG_TEXT_BYTES // 2)  # noqa: S311
    return f"turn {number} [[sim: chunks=1 answer='{''.join(letters)}']]"
