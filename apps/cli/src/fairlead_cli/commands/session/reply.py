"""`fairlead reply`: answer a permission request or a question."""

import argparse
from typing import get_args

from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.permission import Reply

REPLIES: tuple[Reply, ...] = get_args(Reply)
_LISTED = "`fairlead asks` lists what does"


def run(args: argparse.Namespace) -> int:
    is_question = args.request.startswith("que")
    run_with_client(
        args,
        lambda client: _answer(client, args) if is_question else _reply(client, args),
    )
    return report(args, f"Answered: {args.request}", request=args.request, answer=args.answer)


async def _reply(client: AsyncFairlead, args: argparse.Namespace) -> None:
    reply = next((choice for choice in REPLIES if [choice] == args.answer), None)
    if reply is None:
        raise UsageError(f"a permission is answered with {', '.join(REPLIES)}")
    pending = {request.id: request for request in await client.permissions()}
    if args.request not in pending:
        raise CommandError(f"{args.request} does not wait for a permission: {_LISTED}")
    await client.approve(pending[args.request], reply, message=args.message or None)


async def _answer(client: AsyncFairlead, args: argparse.Namespace) -> None:
    pending = {request.id: request for request in await client.questions()}
    if args.request not in pending:
        raise CommandError(f"{args.request} does not wait for an answer: {_LISTED}")
    rejects = args.answer == ["reject"]
    answers = None if rejects else [[answer] for answer in args.answer]
    await client.answer(pending[args.request], answers)
