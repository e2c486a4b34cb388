"""`fairlead provision`: create or update the streams. Safe to repeat."""

import argparse
import asyncio

from fairlead_cli.addresses import add_config, effective_config
from fairlead_cli.terminal import stdout_console
from fairlead_eventlog.provision import provision


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nats", metavar="URL", help="default: as the configuration says")
    parser.add_argument("--replicas", type=int, metavar="N", help="copies of each stream")
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Create or update the streams. A change that would lose data is refused."""
    config = effective_config(args)
    out = stdout_console()
    asyncio.run(
        provision(
            args.nats or config.nats.url,
            replicas=args.replicas or config.nats.replicas,
            wake_deadline_s=config.runner.wake_deadline_s,
            pools=(config.tools.pool,),
            progress=lambda line: out.print(line, markup=False),
        )
    )
    return 0
