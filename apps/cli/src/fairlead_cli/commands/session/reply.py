"""`fairlead reply`: answer a permission request or a question."""

import argparse
import asyncio
from typing import get_args

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import Client, open_client
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import stderr_console
from fairlead_schema.permission import PermissionRequest, Reply

REPLIES: tuple[Reply, ...] = get_args(Reply)


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("request", metavar="REQUEST", help="the id that `fairlead asks` shows")
    add(
        "answer",
        metavar="ANSWER",
        nargs="+",
        help="once, always or reject; for questions one answer each, or reject",
    )
    add("-m", "--message", metavar="TEXT", help="the reason of a rejection, for the model")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_reply(args))
    stderr_console().print(f"Answered: {args.request}", style="dim", markup=False)
    return 0


async def _reply(args: argparse.Namespace) -> None:
    async with open_client(http_url(args), http_token(args)) as client:
        if args.request.startswith("que"):
            await _answer_question(client, args)
        else:
            await _reply_permission(client, args)


async def _reply_permission(client: Client, args: argparse.Namespace) -> None:
    reply = next((choice for choice in REPLIES if [choice] == args.answer), None)
    if reply is None:
        raise CommandError(f"a permission is answered with {', '.join(REPLIES)}")
    await client.reply(await _pending_permission(client, args.request), reply, args.message)


async def _answer_question(client: Client, args: argparse.Namespace) -> None:
    questions = await client.questions()
    question = next((pending for pending in questions if pending.id == args.request), None)
    if question is None:
        raise CommandError(f"{args.request} does not wait for an answer")
    rejects = args.answer == ["reject"]
    await client.answer(question, None if rejects else [[answer] for answer in args.answer])


async def _pending_permission(client: Client, request_id: str) -> PermissionRequest:
    request = next(
        (pending for pending in await client.permissions() if pending.id == request_id), None
    )
    if request is None:
        raise CommandError(f"{request_id} does not wait for a permission")
    return request
