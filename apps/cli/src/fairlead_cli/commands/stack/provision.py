"""`fairlead provision`: create or update the streams, or write the keys and grants of NATS."""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from fairlead_cli import nats_principals
from fairlead_cli.addresses import add_config, effective_config
from fairlead_cli.terminal import stdout_console
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.provision import provision


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nats", metavar="URL", help="default: as the configuration says")
    add("--replicas", type=int, metavar="N", help="copies of each stream")
    add("--nats-auth", type=Path, metavar="DIR", help="write keys and grants here, and stop")
    add(
        "--principal",
        action="append",
        default=[],
        metavar="NAME:TENANT:ROLES",
        help="with --nats-auth: a tenant's own client, such as service:billing:acme:service,viewer",
    )
    add(
        "--without",
        action="append",
        default=[],
        metavar="NAME:TENANT",
        help="with --nats-auth: revoke a principal and delete its key",
    )
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Create or update the streams. A change that would lose data is refused."""
    out = stdout_console()
    if args.nats_auth is not None:
        for line in write_keys(args.nats_auth, args.principal, args.without):
            out.print(line, markup=False, soft_wrap=True)
        return 0
    config = effective_config(args)
    address = config.nats.address("provision")
    asyncio.run(
        provision(
            address if args.nats is None else replace(address, url=args.nats),
            replicas=args.replicas or config.nats.replicas,
            wake_deadline_s=config.runner.wake_deadline_s,
            pools=(config.tools.pool,),
            progress=lambda line: out.print(line, markup=False),
        )
    )
    return 0


def write_keys(directory: Path, added: list[str], removed: list[str]) -> list[str]:
    """Write the keys and grants. The lines say what changed. Raises UsageError."""
    known = nats_principals.load(directory)
    wanted = nats_principals.change(known, added, removed)
    keys = KeyDirectory(directory)
    created = keys.write(grant.principal() for grant in wanted.values())
    for name in known.keys() - wanted.keys():
        keys.seed_file(name).unlink(missing_ok=True)
    nats_principals.save(directory, wanted)
    return [
        *(f"key {keys.seed_file(name)}: created" for name in created),
        f"{keys.config}: written; include it in the configuration of nats-server and reload",
    ]
