"""`fairlead asks`: the permissions and questions that wait for an answer, of all sessions."""

import argparse

from rich.markup import escape

from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.permission import PermissionRequest, QuestionRequest


def run(args: argparse.Namespace) -> int:
    requests = run_with_client(args, load_asks)
    if args.json:
        print_json_lines(request.wire() for request in requests)
    elif requests:
        _show(requests)
    else:
        stdout_console().print("No session waits for an answer.")
    return 0


async def load_asks(client: AsyncFairlead) -> list[PermissionRequest | QuestionRequest]:
    """Everything that waits for a person."""
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
