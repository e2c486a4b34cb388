"""Runs the measurements of event streams on a stack of its own."""

from collections.abc import Callable
from typing import Final

from fairlead_cli.bench import replay
from fairlead_cli.bench.streams.fan_out import measure_many_sessions, measure_one_session
from fairlead_cli.bench.suite import temporary_directory
from fairlead_cli.embedded.stack import run_stack
from fairlead_eventlog.jetstream.connect import connect

# One caller opens thousands of streams here, and nothing may refuse them.
ROOM: Final = {
    "FAIRLEAD_GATEWAY_STREAMS_MAX": "100000",
    "FAIRLEAD_GATEWAY_CONNECTIONS_MAX": "20000",
    "FAIRLEAD_GATEWAY_REQUESTS_PER_S": "1000000",
    "FAIRLEAD_GATEWAY_REQUEST_BURST": "1000000",
}


async def run_stream_suite(*, scale: float, progress: Callable[[str], None]) -> dict[str, float]:
    """Start a stack, measure its streams, stop it. `scale` 1 means 2,000 sessions and 500 clients."""
    figures: dict[str, float] = {}
    with temporary_directory() as directory:
        progress("starting the stack")
        async with (
            run_stack(directory, sim=True, gateway=ROOM) as stack,
            connect(stack.operator, name="fairlead-bench", timeout_s=30.0) as eventlog,
        ):
            gateway, url = stack.pid("gateway"), stack.http_with_key
            assert gateway is not None, "the stack has a gateway"
            progress("replay")
            _, figures["replay of 10,000 events, ms"] = await replay.time_replay(
                url, eventlog, events=10_000
            )
            progress("many clients of one session")
            figures |= await measure_one_session(
                url, gateway, eventlog, clients=max(10, int(500 * scale)), fragments=500
            )
            progress("one client of many sessions")
            figures |= await measure_many_sessions(
                url, gateway, eventlog, sessions=max(20, int(2000 * scale))
            )
    return figures
