"""`fairlead backup`: copy a running deployment into a directory."""

import argparse
import asyncio
from datetime import UTC, datetime

from fairlead_cli.addresses import effective_config
from fairlead_cli.backup.backup import write_backup
from fairlead_cli.backup.dated import dated_name, remove_expired
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console


def run(args: argparse.Namespace) -> int:
    """Write the backup. It holds everything that was acknowledged before the command began."""
    if args.keep is not None and (args.keep < 1 or not args.dated):
        raise UsageError("--keep N needs --dated and at least 1: other directories are yours")
    notes = stderr_console()

    def progress(line: str) -> None:
        if not args.json:
            notes.print(line, style="dim", markup=False, soft_wrap=True)

    address = effective_config(args).nats.address("backup")
    root = args.directory / dated_name(datetime.now(UTC)) if args.dated else args.directory
    manifest = asyncio.run(write_backup(address, root, progress))
    for old in remove_expired(args.directory, args.keep) if args.dated and args.keep else ():
        progress(f"{old}: removed, {args.keep} newer backups are kept")
    if args.json:
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
    else:
        stdout_console().print(
            f"{root}: backup {manifest.id} with {manifest.commits} commits, all that was"
            f" acknowledged before {manifest.began}",
            markup=False,
            soft_wrap=True,
        )
    return 0
