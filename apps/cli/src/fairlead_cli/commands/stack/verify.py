"""`fairlead verify`: checks the log with rules of its own, not the services', and lists violations."""

import argparse
from pathlib import Path

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import UsageError


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
    address = None if args.file is not None else effective_config(args).nats.address("operator")
    with keep_modules():
        from fairlead_cli.audit.log_report import verify_log  # noqa: PLC0415
    return verify_log(args, address)
