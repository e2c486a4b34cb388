"""`fairlead backup`: copy a running deployment into a directory, once or at an interval."""

import argparse
import asyncio

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """Write the backup. It holds everything that was acknowledged before the command began."""
    if args.keep is not None and (args.keep < 1 or not args.dated):
        raise UsageError("--keep N needs --dated and at least 1: other directories are yours")
    if args.every is not None and not args.dated:
        raise UsageError("--every HOURS needs --dated: each backup has a directory of its own")
    address = effective_config(args).nats.address("backup")
    with keep_modules():
        from fairlead_cli.backup.interval_backup import back_up, stay  # noqa: PLC0415
    asyncio.run(back_up(args, address) if args.every is None else stay(args, address))
    return 0
