"""`fairlead sessions`: the newest sessions."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime

from rich.markup import escape

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.terminal import stdout_console, table
from fairlead_schema.session_info import SessionInfo


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--limit", type=int, default=20, metavar="N", help="how many (default 20)")
    add("--search", metavar="TEXT", help="only titles with this text")
    add("--json", action="store_true", help="one session per line")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    sessions = asyncio.run(_load_sessions(args))
    if args.json:
        sys.stdout.writelines(
            session.model_dump_json(by_alias=True, exclude_none=True) + "\n" for session in sessions
        )
    elif sessions:
        _show(sessions)
    else:
        stdout_console().print('No sessions yet. Start one: [bold]fairlead prompt "Say hello"[/]')
    return 0


async def _load_sessions(args: argparse.Namespace) -> list[SessionInfo]:
    async with open_client(http_url(args), http_token(args)) as client:
        return await client.sessions(limit=args.limit, search=args.search)


def _show(sessions: list[SessionInfo]) -> None:
    grid = table("SESSION", "UPDATED", "AGENT", "MODEL", "COST", "TITLE")
    for session in sessions:
        updated = datetime.fromtimestamp(session.time.updated / 1000, UTC).astimezone()
        model = f"{session.model.provider_id}/{session.model.id}" if session.model else "-"
        grid.add_row(
            session.id,
            f"{updated:%Y-%m-%d %H:%M}",
            escape(session.agent or "-"),
            escape(model),
            f"${session.cost:.4f}",
            escape(session.title),
        )
    stdout_console().print(grid)
