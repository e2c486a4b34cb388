"""`fairlead sim`: the simulated model provider alone."""

import argparse
import asyncio
import signal

from fairlead_cli.embedded.ports import LOOPBACK, claim
from fairlead_cli.sim.serve import serve


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, help="loopback port (default: a free one)")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped; the first line on standard output is the address."""
    port = claim(args.port, "simulated provider", "--port")
    asyncio.run(_serve(port))
    return 0


async def _serve(port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop.set)
    await serve(LOOPBACK, port, ready=lambda url: print(url, flush=True), stop=stop)  # noqa: T201
