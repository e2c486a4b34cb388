"""`fairlead secrets`: make the keys, certificates and passwords of a deployment."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from fairlead_cli.deployment.secrets_directory import (
    DEFAULT_DATABASE,
    DEFAULT_HOSTS,
    SecretsDirectory,
)
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import stdout_console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="one directory for each process is made here")
    parser.add_argument(
        "--nats-host",
        action="append",
        metavar="NAME",
        help="a name of the nats-servers in their certificate; repeatable;"
        " default: the names of the shipped compose and Kubernetes files",
    )
    parser.add_argument(
        "--database",
        default=DEFAULT_DATABASE,
        metavar="HOST:PORT/NAME",
        help=f"where the services find Postgres; default: {DEFAULT_DATABASE}",
    )


def run(args: argparse.Namespace) -> int:
    """Make what is missing. Existing secrets stay, so the command may run before every start."""
    hosts = tuple(args.nats_host or DEFAULT_HOSTS)
    try:
        lines = SecretsDirectory(args.directory, args.database).write(hosts, datetime.now(UTC))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{args.directory} cannot be written: {reason}") from error
    out = stdout_console()
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
    return 0
