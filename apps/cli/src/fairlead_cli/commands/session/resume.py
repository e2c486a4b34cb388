"""`fairlead resume`: run at least one turn of a session, or join the turn that already runs."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.terminal import stderr_console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_resume(args))
    stderr_console().print(
        f"Resume requested. See: fairlead explain {args.session}", style="dim", markup=False
    )
    return 0


async def _resume(args: argparse.Namespace) -> None:
    async with open_client(http_url(args), http_token(args)) as client:
        await client.resume(args.session)
