"""`fairlead verify`: checks the log with rules of its own, not the services', and lists violations."""

import argparse
import asyncio
from pathlib import Path

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError
from fairlead_cli.operator_link import operator_link
from fairlead_schema.identity.nats_address import NatsAddress


def run(args: argparse.Namespace) -> int:
    """Print the violations. The exit code is 1 when there is one."""
    if args.file is not None and args.session is not None:
        raise UsageError("name a session or a file, not both")
    if args.session is not None and Path(args.session).is_file():
        args.file, args.session = Path(args.session), None
    if args.session is not None and not args.session.startswith("ses"):
        raise UsageError(
            f"{args.session}: no such file, and no id of a session (it begins with ses)"
        )
    if args.file is not None:
        with keep_modules():
            from fairlead_cli.audit.log_report import verify_file  # noqa: PLC0415
        return verify_file(args)
    return asyncio.run(_verify_live(args, effective_config(args).nats.address("operator")))


async def _verify_live(args: argparse.Namespace, address: NatsAddress) -> int:
    async with operator_link(address, "fairlead-verify") as link:
        with keep_modules():
            from fairlead_cli.audit.live_log import verify_log  # noqa: PLC0415
        return await verify_log(args, link)
