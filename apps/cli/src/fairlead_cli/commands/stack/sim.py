"""`fairlead sim`: runs the simulated model provider alone."""

import argparse
import asyncio
import json
import signal
from collections.abc import Callable

from fairlead_cli.embedded.ports import LOOPBACK, claim_port
from fairlead_cli.errors import UsageError
from fairlead_cli.sim.app import SimSettings
from fairlead_cli.sim.scenario import BadScenario, load_scenarios
from fairlead_cli.sim.server import serve


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; the first line on standard output is the address."""
    settings = parse_settings(args)
    port = args.port
    if args.host == LOOPBACK:
        port = claim_port(port, "simulated provider", "--port")
    asyncio.run(_serve(args.host, port, settings, _print_json if args.json else _print_url))
    return 0


def parse_settings(args: argparse.Namespace) -> SimSettings:
    """The settings that the options describe. Raises UsageError."""
    try:
        scenarios = () if args.scenarios is None else load_scenarios(args.scenarios)
    except BadScenario as error:
        raise UsageError(f"--scenarios: {error}") from error
    return SimSettings(api_key=args.api_key, seed=args.seed, scenarios=scenarios)


async def _serve(host: str, port: int, settings: SimSettings, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop.set)
    await serve(host, port, ready=ready, stop=stop, settings=settings)


def _print_url(url: str) -> None:
    print(url, flush=True)  # noqa: T201


def _print_json(url: str) -> None:
    print(json.dumps({"url": url}), flush=True)  # noqa: T201
