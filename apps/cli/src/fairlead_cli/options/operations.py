"""The options of the commands for operators of a deployment, a function for each module of commands."""

import argparse
from pathlib import Path
from typing import Final

from fairlead_cli.options.shared import add_config, add_json

DEFAULT_DATABASE: Final = "postgres:5432/fairlead"


def secrets(parser: argparse.ArgumentParser) -> None:
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
    add_json(parser, "one line of JSON per change")


def audit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--whole", action="store_true", help="begin with the first commit, not with what comes now")
    add(
        "--sessions-max",
        type=int,
        default=20_000,
        metavar="N",
        help="sessions to hold in memory; others are read again when they move (20000)",
    )
    add("--port", type=int, metavar="PORT", help="of health and metrics; default: [health] port")
    add_config(parser)
