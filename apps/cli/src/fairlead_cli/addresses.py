"""Addresses of servers: from an option, else the environment, else the stack on this machine."""

import argparse
import os
from typing import Any

from fairlead_cli.embedded.state_directory import load_addresses
from fairlead_service.config.configuration import Config, load


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
