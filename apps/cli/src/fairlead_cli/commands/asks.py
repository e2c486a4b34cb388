"""`fairlead asks`: what waits for a person, in every session."""

import argparse
import asyncio
import sys

from rich.markup import escape

from fairlead_cli.addresses import add_http, http_url
from fairlead_cli.client import connected
from fairlead_cli.terminal import answers, remarks, table
from fairlead_schema.permission import PermissionRequest, QuestionRequest


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one request per line")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    found = asyncio.run(_asks(args))
    if args.json:
        sys.stdout.writelines(
            request.model_dump_json(by_alias=True, exclude_none=True) + "\n" for request in found
        )
    elif found:
        _show(found)
    else:
        answers().print("Nothing waits for a person.")
    return 0


async def _asks(args: argparse.Namespace) -> list[PermissionRequest | QuestionRequest]:
    async with connected(http_url(args)) as client:
        return [*await client.permissions(), *await client.questions()]


def _show(found: list[PermissionRequest | QuestionRequest]) -> None:
    shown = table("REQUEST", "SESSION", "WHAT")
    for request in found:
        shown.add_row(request.id, request.session_id, escape(told(request)))
    answers().print(shown)
    remarks().print(
        "Answer: fairlead reply REQUEST once|always|reject, or the answers to a question",
        style="dim",
        markup=False,
    )


def told(request: PermissionRequest | QuestionRequest) -> str:
    """A request in one line."""
    if isinstance(request, PermissionRequest):
        return f"{request.action} {', '.join(request.resources)}"
    return "; ".join(
        f"{one.question} [{' | '.join(option.label for option in one.options)}]"
        for one in request.questions
    )
