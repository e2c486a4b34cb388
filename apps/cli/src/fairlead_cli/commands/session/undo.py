"""`fairlead undo`: take the last prompt back, with its answer and the files that it changed."""

import argparse
import asyncio

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.boundaries import undo_boundary
from fairlead_cli.client import open_client
from fairlead_cli.errors import CommandError
from fairlead_cli.reverted_files import print_state


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--keep-files", action="store_true", help="change no file back")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_undo(args))


async def _undo(args: argparse.Namespace) -> int:
    async with open_client(http_url(args), http_token(args)) as client:
        staged = (await client.session(args.session)).revert
        messages = await client.active_messages(args.session)
        boundary = undo_boundary(messages, None if staged is None else staged.message_id)
        if boundary is None:
            raise CommandError("there is nothing to undo")
        state = await client.stage_revert(args.session, boundary, files=not args.keep_files)
    print_state(state, args.session)
    return 0
