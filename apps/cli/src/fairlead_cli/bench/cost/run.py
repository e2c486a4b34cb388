"""Runs every load of the cost bench on one stack."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fairlead_cli.bench import tool_calls
from fairlead_cli.bench.cost.loads import LoadTarget
from fairlead_cli.bench.cost.report import LoadCost, loads, measure
from fairlead_cli.bench.suite import UNLIMITED, temporary_directory
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import run_stack
from fairlead_eventlog.jetstream.connect import connect


async def run_cost(
    *, scale: float, progress: Callable[[str], None], solo: bool = False
) -> list[LoadCost]:
    """Start a stack, measure what each load costs, stop the stack."""
    units = max(20, int(300 * scale))
    progress("starting the stack")
    async with open_target(solo=solo) as (stack, target):
        costs: list[LoadCost] = []
        for name, open_load in loads().items():
            progress(name)
            costs.append(await measure(stack, target, name, open_load, units=units))
    return costs


@asynccontextmanager
async def open_target(
    *, solo: bool = False, config: str = ""
) -> AsyncIterator[tuple[RunningStack, LoadTarget]]:
    """A stack in a temporary directory, with the probe tools and without limits of its caller."""
    with temporary_directory() as directory:
        async with (
            run_stack(
                directory,
                sim=True,
                config=tool_calls.write_config(directory, more=config),
                gateway=UNLIMITED,
                solo=solo,
            ) as stack,
            connect(stack.operator, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            yield stack, LoadTarget(stack.http_with_key, eventlog)
