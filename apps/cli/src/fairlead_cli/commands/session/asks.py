"""`fairlead asks`: the permissions and questions that wait for an answer, of all sessions."""

import argparse
import asyncio
import sys

from rich.markup import escape

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_schema.permission import PermissionRequest, QuestionRequest


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one request per line")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    requests = asyncio.run(_load_requests(args))
    if args.json:
        sys.stdout.writelines(
            request.model_dump_json(by_alias=True, exclude_none=True) + "\n" for request in requests
        )
    elif requests:
        _show(requests)
    else:
        stdout_console().print("No session waits for an answer.")
    return 0


async def _load_requests(args: argparse.Namespace) -> list[PermissionRequest | QuestionRequest]:
    async with open_client(http_url(args), http_token(args)) as client:
        return [*await client.permissions(), *await client.questions()]


def _show(requests: list[PermissionRequest | QuestionRequest]) -> None:
    grid = table("REQUEST", "SESSION", "WHAT")
    for request in requests:
        grid.add_row(request.id, request.session_id, escape(describe(request)))
    stdout_console().print(grid)
    stderr_console().print(
        "Answer: fairlead reply REQUEST once|always|reject, or the answers to a question",
        style="dim",
        markup=False,
    )


def describe(request: PermissionRequest | QuestionRequest) -> str:
    """A request in one line."""
    if isinstance(request, PermissionRequest):
        return f"{request.action} {', '.join(request.resources)}"
    return "; ".join(
        f"{question.question} [{' | '.join(option.label for option in question.options)}]"
        for question in request.questions
    )
