"""`fairlead cancel`: withdraw one pending input before the model sees it."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.terminal import stderr_console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("message", metavar="MESSAGE")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_cancel(args))
    stderr_console().print(f"Withdrawn: {args.message}", style="dim", markup=False)
    return 0


async def _cancel(args: argparse.Namespace) -> None:
    async with open_client(http_url(args), http_token(args)) as client:
        await client.cancel(args.session, args.message)
