"""`fairlead redo`: bring back what the last undo took."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.boundaries import redo_boundary
from fairlead_cli.client import open_client
from fairlead_cli.errors import CommandError
from fairlead_cli.reverted_files import print_state
from fairlead_cli.terminal import stderr_console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_redo(args))


async def _redo(args: argparse.Namespace) -> int:
    async with open_client(http_url(args), http_token(args)) as client:
        staged = (await client.session(args.session)).revert
        if staged is None:
            raise CommandError("there is nothing to redo")
        boundary = redo_boundary(await client.active_messages(args.session), staged.message_id)
        if boundary is None:
            await client.clear_revert(args.session)
            stderr_console().print("Everything is back.", style="dim", markup=False)
            return 0
        print_state(await client.stage_revert(args.session, boundary, files=True), args.session)
    return 0
