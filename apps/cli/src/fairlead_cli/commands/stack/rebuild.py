"""`fairlead rebuild`: drop the read models and rebuild them from the log, and the register of message ids."""

import argparse

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console


def run(args: argparse.Namespace) -> int:
    """Rebuild, and print a digest of the read models: equal logs give equal digests."""
    if args.processes < 1:
        raise CommandError("--processes must be at least 1")
    config = effective_config(args)
    with keep_modules():
        from fairlead_cli.deployment.read_models import rebuild_read_models  # noqa: PLC0415
    digest = rebuild_read_models(config, args.processes, args.cold)
    if args.json:
        print_json({"digest": digest})
    else:
        stdout_console().print(digest, markup=False)
    return 0
