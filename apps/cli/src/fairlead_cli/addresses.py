"""Addresses of servers: from an option, else the environment, else the stack on this machine."""

import argparse
import os
from pathlib import Path
from typing import Any, Final

from fairlead_cli.embedded.state_directory import StateDirectory, load_addresses
from fairlead_service.config.configuration import Config, load

DEFAULT_HTTP: Final = "http://127.0.0.1:8420"


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a local stack."""
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".fairlead"),
        metavar="DIR",
        help="state directory of a local stack (default .fairlead)",
    )


def add_http(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a gateway or a local stack."""
    add_gateway(parser)
    add_state(parser)


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a gateway, and the key for it."""
    parser.add_argument(
        "--http", metavar="URL", help="default: $FAIRLEAD_HTTP, else the local stack"
    )
    parser.add_argument(
        "--token", metavar="KEY", help="default: $FAIRLEAD_TOKEN, else the key of the local stack"
    )


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a configuration or a local stack."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="fairlead.toml")
    add_state(parser)


def http_url(args: argparse.Namespace) -> str:
    """The base URL of the HTTP API."""
    local: dict[str, Any] = load_addresses(args.state)
    url = args.http or os.environ.get("FAIRLEAD_HTTP") or local.get("http") or DEFAULT_HTTP
    return str(url).rstrip("/")


def http_token(args: argparse.Namespace) -> str | None:
    """The key or token for the HTTP API. The key of the local stack goes to that stack alone."""
    token = args.token or os.environ.get("FAIRLEAD_TOKEN")
    if token:
        return str(token)
    local = load_addresses(args.state).get("http")
    if local is None or http_url(args) != str(local).rstrip("/"):
        return None
    try:
        return StateDirectory(args.state).token.read_text().strip() or None
    except OSError:
        return None


def effective_config(args: argparse.Namespace) -> Config:
    """The configuration in force, with the server addresses of the local stack if one runs."""
    local = load_addresses(args.state)
    if "nats" in local:
        local["nats_url"] = nats_url(local)
    overrides = {
        variable: str(local[key])
        for variable, key in (
            ("FAIRLEAD_NATS_URL", "nats_url"),
            ("FAIRLEAD_NATS_NKEY_FILE", "operator_nkey"),
            ("FAIRLEAD_POSTGRES_DSN", "postgres"),
            ("FAIRLEAD_POSTGRES_MIGRATE_DSN", "postgres"),
        )
        if key in local and args.config is None
    }
    return load(args.config, {**overrides, **os.environ})


def nats_url(local: dict[str, Any]) -> str:
    """The addresses of all nodes of a local stack, whose saved addresses these are."""
    return ",".join(local.get("nats_nodes") or [local["nats"]])
