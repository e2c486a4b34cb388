"""`fairlead sim`: the simulated model provider alone."""

import argparse
import asyncio
import signal
from pathlib import Path

from fairlead_cli.embedded.ports import LOOPBACK, claim
from fairlead_cli.errors import UsageError
from fairlead_cli.sim.app import Settings
from fairlead_cli.sim.scenario import BadScenario, read
from fairlead_cli.sim.serve import serve


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, help="loopback port (default: a free one)")
    parser.add_argument("--scenarios", type=Path, metavar="FILE", help="named scripts, as TOML")
    parser.add_argument("--seed", type=int, default=0, help="what chance there is, from this (0)")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped; the first line on standard output is the address."""
    settings = settings_of(args)
    port = claim(args.port, "simulated provider", "--port")
    asyncio.run(_serve(port, settings))
    return 0


def settings_of(args: argparse.Namespace) -> Settings:
    """What the options say. Raises UsageError."""
    try:
        scenarios = () if args.scenarios is None else read(args.scenarios)
    except BadScenario as error:
        raise UsageError(f"--scenarios: {error}") from error
    return Settings(seed=args.seed, scenarios=scenarios)


async def _serve(port: int, settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop.set)
    await serve(
        LOOPBACK,
        port,
        ready=lambda url: print(url, flush=True),  # noqa: T201
        stop=stop,
        settings=settings,
    )
