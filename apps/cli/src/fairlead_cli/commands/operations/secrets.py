"""`fairlead secrets`: make the keys, certificates and passwords of a deployment."""

import argparse
import os
from datetime import UTC, datetime

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stdout_console
from fairlead_service.config.configuration import load


def run(args: argparse.Namespace) -> int:
    """Make what is missing. Existing secrets stay, so the command may run before every start."""
    pools = load(args.config, os.environ).pools
    with keep_modules():
        from fairlead_cli.deployment.secrets_directory import (  # noqa: PLC0415
            DEFAULT_HOSTS,
            SecretsDirectory,
        )
    hosts = tuple(args.nats_host or DEFAULT_HOSTS)
    try:
        secrets = SecretsDirectory(args.directory, args.database, pools)
        lines = secrets.write(hosts, datetime.now(UTC))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{args.directory} cannot be written: {reason}") from error
    if args.json:
        print_json_lines({"change": line} for line in lines)
        return 0
    out = stdout_console()
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    return 0
