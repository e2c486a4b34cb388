"""`fairlead top`: watch sessions, asks, rates and cost on one screen, and act on them."""

import argparse
import asyncio
import os
import sys

from fairlead_cli.command_line.command_table import COMMANDS
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.command_line.opening_line import OpeningLine, check_terminal
from fairlead_cli.errors import UsageError
from fairlead_cli.gateway import PATIENCE_S, explain_errors, gateway_of, run_with_client
from fairlead_cli.json_output import print_json
from fairlead_cli.top.look import SessionObserver
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport


def run(args: argparse.Namespace) -> int:
    if args.limit < 1 or args.every <= 0:
        raise UsageError("--limit and --every must be positive")
    if args.json:
        look = run_with_client(args, lambda client: SessionObserver(client, args.limit).look())
        print_json(look.wire())
        return 0
    check_terminal("top", "--json prints one look for programs")
    with OpeningLine("top") as line:
        return asyncio.run(_show(args, line))


async def _show(args: argparse.Namespace, line: OpeningLine) -> int:
    """Look once before the screen opens: a wrong address or key is said in the terminal."""
    gateway = gateway_of(args)
    connection = AsyncHttpConnection(gateway.url, gateway.token, patience_s=PATIENCE_S)
    client = AsyncFairlead(transport=AsyncHttpTransport(connection))
    observer = SessionObserver(client, args.limit)
    try:
        with explain_errors(gateway.url):
            first = await observer.look()
        # The library of the terminal is loaded only where there is a terminal.
        with keep_modules():
            from fairlead_cli.top.app import TopApp  # noqa: PLC0415
        app = TopApp(
            observer,
            connection,
            first,
            every_s=args.every,
            open_command=open_command(args),
            environment=_environment(args),
        )
        line.hide()
        await app.run_async()
        return app.return_code or 0
    finally:
        await client.aclose()


def open_command(args: argparse.Namespace) -> list[str]:
    """The command that opens a session; its id follows."""
    state = ["--state", str(args.state)]
    name = ["chat", *state, "--resume"] if "chat" in COMMANDS else ["tail", *state]
    return [sys.executable, "-m", "fairlead_cli", *name]


def _environment(args: argparse.Namespace) -> dict[str, str]:
    """The server and the key for the opened session. A key in an argument would be seen by others."""
    given = {"FAIRLEAD_HTTP": args.http, "FAIRLEAD_TOKEN": args.token}
    return {**os.environ, **{name: value for name, value in given.items() if value}}
