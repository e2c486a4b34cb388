"""Where things are: as an option says, else the environment, else the stack that runs here."""

import argparse
import os
from pathlib import Path
from typing import Any, Final

from fairlead_cli.embedded.state import recall
from fairlead_service.config.configuration import Config, load

DEFAULT_HTTP: Final = "http://127.0.0.1:8420"


def add_state(parser: argparse.ArgumentParser) -> None:
    """The option that names a local stack."""
    parser.add_argument(
        "--state", type=Path, default=Path(".fairlead"), metavar="DIR", help="a stack's state"
    )


def add_http(parser: argparse.ArgumentParser) -> None:
    """The options that name a server."""
    parser.add_argument(
        "--http", metavar="URL", help="default: $FAIRLEAD_HTTP, else the stack that runs here"
    )
    add_state(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    """The options that name a configuration, or a local stack."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="fairlead.toml")
    add_state(parser)


def http_url(args: argparse.Namespace) -> str:
    """The base URL of the HTTP API."""
    local: dict[str, Any] = recall(args.state)
    found = args.http or os.environ.get("FAIRLEAD_HTTP") or local.get("http") or DEFAULT_HTTP
    return str(found).rstrip("/")


def effective_config(args: argparse.Namespace) -> Config:
    """The configuration in force; a stack that runs here says where its servers are."""
    local = recall(args.state)
    told = {
        variable: str(local[key])
        for variable, key in (("FAIRLEAD_NATS_URL", "nats"), ("FAIRLEAD_POSTGRES_DSN", "postgres"))
        if key in local and args.config is None
    }
    return load(args.config, {**told, **os.environ})
