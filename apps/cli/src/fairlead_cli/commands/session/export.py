"""`fairlead export`: write sessions to one file that can be verified and imported."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.exports.transfer_requests import download_export
from fairlead_cli.gateway import run_with_connection
from fairlead_cli.outcome import report
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.prompt_input import session_id_of


def run(args: argparse.Namespace) -> int:
    if args.all == (args.session is not None) or (args.all and args.tree):
        raise UsageError("name one session, perhaps with --tree, or say --all")
    if args.output == "-":
        _download(args, sys.stdout.buffer.write)
        return 0
    path = Path(args.output or f"{args.session or 'tenant'}.fairlead.jsonl")
    count, events = _write(args, path)
    note = f"{path}: {count} sessions, {events} events, verified"
    return report(args, note, file=str(path), sessions=count, events=events)


def _write(args: argparse.Namespace, path: Path) -> tuple[int, int]:
    """Write the file beside its place, verify it, and then move it there. The number of sessions and events."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            _download(args, file.write)
        with keep_modules():
            from fairlead_cli.exports.export_file import verify_file  # noqa: PLC0415
        sessions = verify_file(part).sessions.values()
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return len(sessions), sum(session.seq for session in sessions)


def _download(args: argparse.Namespace, write: Callable[[bytes], object]) -> None:
    """Write the pieces of the file. It is complete only with its own last line."""

    async def download(connection: AsyncHttpConnection) -> None:
        one = None if args.all else f"/api/session/{session_id_of(args.session)}/export"
        await download_export(connection, one or "/api/tenant/export", write, tree=args.tree)

    run_with_connection(args, download)
