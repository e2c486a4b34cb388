"""`fairlead rebuild`: drop the read models and rebuild them from the log, and the register of message ids."""

import argparse
import asyncio

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError
from fairlead_cli.json_output import print_json
from fairlead_cli.operator_link import operator_link
from fairlead_cli.terminal import stdout_console
from fairlead_service.config.configuration import Config


def run(args: argparse.Namespace) -> int:
    """Rebuild, and print a digest of the read models: equal logs give equal digests."""
    if args.processes < 1:
        raise CommandError("--processes must be at least 1")
    config = effective_config(args)
    digest = asyncio.run(_rebuild(args, config))
    if args.json:
        print_json({"digest": digest})
    else:
        stdout_console().print(digest, markup=False)
    return 0


async def _rebuild(args: argparse.Namespace, config: Config) -> str:
    async with operator_link(config.nats.address("operator"), "fairlead-rebuild") as link:
        with keep_modules():
            from fairlead_cli.deployment.read_models import rebuild_read_models  # noqa: PLC0415
        return await rebuild_read_models(link, config, args.processes, args.cold)
