"""`fairlead resume`: run at least one turn, or join the one that runs."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_url
from fairlead_cli.client import connected
from fairlead_cli.terminal import remarks


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_resume(args))
    remarks().print(
        f"Asked to run. See: fairlead explain {args.session}", style="dim", markup=False
    )
    return 0


async def _resume(args: argparse.Namespace) -> None:
    async with connected(http_url(args)) as client:
        await client.resume(args.session)
