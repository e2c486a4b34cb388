"""`fairlead rename`: give a session a title of your own."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.terminal import stderr_console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("title", metavar="TITLE")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_rename(args))
    stderr_console().print(f"Renamed: {args.session}", style="dim", markup=False)
    return 0


async def _rename(args: argparse.Namespace) -> None:
    async with open_client(http_url(args), http_token(args)) as client:
        await client.rename(args.session, args.title)
