"""`fairlead provision`: create or update the streams, or write the keys and grants of NATS."""

import argparse
import os
from dataclasses import replace

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console
from fairlead_service.config.configuration import load


def run(args: argparse.Namespace) -> int:
    """Create or update the streams. A change that would lose data is refused."""
    if args.nats_auth is not None:
        return _write_keys(args)
    config = effective_config(args)
    address = config.nats.address("provision")
    address = address if args.nats is None else replace(address, url=args.nats)
    with keep_modules():
        from fairlead_cli.deployment.stream_provision import provision_streams  # noqa: PLC0415
    provision_streams(args, config, address, _show_json if args.json else _show)
    return 0


def _write_keys(args: argparse.Namespace) -> int:
    pools = load(args.config, os.environ).pools
    with keep_modules():
        from fairlead_cli.nats_access.keys import KeyChanges, write_keys  # noqa: PLC0415
    changes = KeyChanges(
        tuple(args.principal),
        tuple(args.without),
        tuple(args.rotate),
        tuple(args.retire),
        args.keys,
        args.callout,
        tuple(args.tenant),
    )
    for line in write_keys(args.nats_auth, changes, pools):
        (_show_json if args.json else _show)(line)
    return 0


def _show(line: str) -> None:
    stdout_console().print(line, markup=False, soft_wrap=True)


def _show_json(line: str) -> None:
    print_json({"change": line})
