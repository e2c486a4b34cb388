"""`fairlead sessions`: the newest sessions."""

import argparse
from datetime import UTC, datetime

from rich.markup import escape

from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stdout_console, table
from fairlead_schema.session_info import SessionInfo


def run(args: argparse.Namespace) -> int:
    sessions = run_with_client(
        args, lambda client: client.sessions(limit=args.limit, search=args.search)
    )
    if args.json:
        print_json_lines(session.wire() for session in sessions)
    elif sessions:
        _show(sessions)
    else:
        stdout_console().print('No sessions yet. Start one: [bold]fairlead prompt "Say hello"[/]')
    return 0


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
            escape(session.title) + (" [dim](stored)[/]" if session.stored else ""),
        )
    stdout_console().print(grid)
