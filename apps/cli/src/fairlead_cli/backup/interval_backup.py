"""Writes a backup, once or at an interval, and says what it holds."""

import argparse
import asyncio
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fairlead_cli.backup.dated import dated_name, remove_expired
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.backup.noted_backup import write_noted_backup
from fairlead_cli.backup.schedule import repeat_backup
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_schema.identity.nats_address import NatsAddress


async def stay(args: argparse.Namespace, address: NatsAddress) -> None:
    """Back up at an interval until somebody ends the process. The first process of a container has no default."""
    every = timedelta(hours=args.every)
    repeated = repeat_backup(lambda: back_up(args, address), args.directory, every, _warn)
    task = asyncio.create_task(repeated)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def back_up(args: argparse.Namespace, address: NatsAddress) -> None:
    """Write one backup, and remove those that are too old."""
    notes = stderr_console()

    def progress(line: str) -> None:
        if not args.json:
            notes.print(line, style="dim", markup=False, soft_wrap=True)

    root = args.directory / dated_name(datetime.now(UTC)) if args.dated else args.directory
    manifest = await write_noted_backup(address, root, progress)
    for old in remove_expired(args.directory, args.keep) if args.dated and args.keep else ():
        progress(f"{old}: removed, {args.keep} newer backups are kept")
    _show(root, manifest, as_json=args.json)


def _show(root: Path, manifest: Manifest, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "directory": str(root),
                "id": manifest.id,
                "commits": manifest.commits,
                "bytes": manifest.bytes,
                "incarnation": manifest.incarnation,
                "began": manifest.began,
            }
        )
        return
    line = (
        f"{root}: backup {manifest.id} with {manifest.commits} commits, all that was"
        f" acknowledged before {manifest.began}"
    )
    stdout_console().print(line, markup=False, soft_wrap=True)


def _warn(reason: str) -> None:
    line = f"fairlead: the backup failed and is tried again: {reason}"
    stderr_console().print(line, markup=False, soft_wrap=True)
