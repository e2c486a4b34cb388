"""`fairlead backup`: copy a running deployment into a directory, once or at an interval."""

import argparse
import asyncio
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fairlead_cli.addresses import effective_config
from fairlead_cli.backup.dated import dated_name, remove_expired
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.backup.noted_backup import write_noted_backup
from fairlead_cli.backup.schedule import repeat_backup
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_schema.identity.nats_address import NatsAddress


def run(args: argparse.Namespace) -> int:
    """Write the backup. It holds everything that was acknowledged before the command began."""
    if args.keep is not None and (args.keep < 1 or not args.dated):
        raise UsageError("--keep N needs --dated and at least 1: other directories are yours")
    if args.every is not None and not args.dated:
        raise UsageError("--every HOURS needs --dated: each backup has a directory of its own")
    address = effective_config(args).nats.address("backup")
    if args.every is None:
        asyncio.run(_back_up(args, address))
        return 0
    asyncio.run(_stay(args, address))
    return 0


async def _stay(args: argparse.Namespace, address: NatsAddress) -> None:
    """Back up at an interval until somebody ends the process. The first process of a container has no default."""
    every = timedelta(hours=args.every)
    repeated = repeat_backup(lambda: _back_up(args, address), args.directory, every, _warn)
    task = asyncio.create_task(repeated)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def _back_up(args: argparse.Namespace, address: NatsAddress) -> None:
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
