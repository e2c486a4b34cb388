"""`fairlead export`: write sessions to one file that can be verified and imported."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import open_client
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.export_file import verify_file
from fairlead_cli.terminal import stderr_console
from fairlead_session.transfer.verification import ExportSummary


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="the session to export")
    add("--tree", action="store_true", help="also the sessions of its sub-agents")
    add("--all", action="store_true", help="every session of the tenant instead of one")
    add("-o", "--output", metavar="FILE", help="default: SESSION.fairlead.jsonl; - for stdout")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    if args.all == (args.session is not None) or (args.all and args.tree):
        raise UsageError("name one session, perhaps with --tree, or say --all")
    if args.output == "-":
        asyncio.run(_download(args, sys.stdout.buffer.write))
        return 0
    path = Path(args.output or f"{args.session or 'tenant'}.fairlead.jsonl")
    summary = _write(args, path)
    events = sum(session.seq for session in summary.sessions.values())
    stderr_console().print(f"{path}: {len(summary.sessions)} sessions, {events} events, verified")
    return 0


def _write(args: argparse.Namespace, path: Path) -> ExportSummary:
    """Write the file beside its place, verify it, and then move it there."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            asyncio.run(_download(args, file.write))
        summary = verify_file(part)
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return summary


async def _download(args: argparse.Namespace, write: Callable[[bytes], object]) -> None:
    path = "/api/tenant/export" if args.all else f"/api/session/{args.session}/export"
    async with open_client(http_url(args), http_token(args)) as client:
        async for piece in client.download(path, {"tree": "true"} if args.tree else {}):
            write(piece)
