"""`fairlead reply`: answer what waits for a person."""

import argparse
import asyncio
from typing import get_args

from fairlead_cli.addresses import add_http, http_url
from fairlead_cli.client import Client, connected
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import remarks
from fairlead_schema.permission import PermissionRequest, Reply

REPLIES: tuple[Reply, ...] = get_args(Reply)


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("request", metavar="REQUEST", help="as `fairlead asks` shows it")
    add(
        "answer",
        metavar="ANSWER",
        nargs="+",
        help="once, always or reject; for a question one answer each, or reject",
    )
    add("-m", "--message", metavar="TEXT", help="why it is rejected: the model reads it")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_reply(args))
    remarks().print(f"Answered: {args.request}", style="dim", markup=False)
    return 0


async def _reply(args: argparse.Namespace) -> None:
    async with connected(http_url(args)) as client:
        if args.request.startswith("que"):
            await _answer(client, args)
        else:
            await _permit(client, args)


async def _permit(client: Client, args: argparse.Namespace) -> None:
    reply = next((one for one in REPLIES if [one] == args.answer), None)
    if reply is None:
        raise CommandError(f"a permission is answered with {', '.join(REPLIES)}")
    await client.reply(await _pending(client, args.request), reply, args.message)


async def _answer(client: Client, args: argparse.Namespace) -> None:
    found = next((one for one in await client.questions() if one.id == args.request), None)
    if found is None:
        raise CommandError(f"{args.request} does not wait for an answer")
    rejected = args.answer == ["reject"]
    await client.answer(found, None if rejected else [[one] for one in args.answer])


async def _pending(client: Client, request_id: str) -> PermissionRequest:
    found = next((one for one in await client.permissions() if one.id == request_id), None)
    if found is None:
        raise CommandError(f"{request_id} does not wait for a permission")
    return found
