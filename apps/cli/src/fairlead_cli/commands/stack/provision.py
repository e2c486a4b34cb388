"""`fairlead provision`: create or update the streams, or write the keys and grants of NATS."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from fairlead_cli.addresses import add_config, effective_config
from fairlead_cli.nats_keys import KeyChanges, write_keys
from fairlead_cli.terminal import stdout_console
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.errors import CredentialsRefused, LogUnavailable, ServerUnfit, SubjectRefused
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.status_record import record_restore

# A job may start before the nodes of a new cluster have elected a leader.
WAIT_S: Final = 60.0
PAUSE_S: Final = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nats", metavar="URL", help="default: as the configuration says")
    add("--replicas", type=int, metavar="N", help="copies of each stream")
    add(
        "--wait",
        type=float,
        default=WAIT_S,
        metavar="SECONDS",
        help=f"how long to wait for servers that do not answer yet ({WAIT_S:.0f})",
    )
    add(
        "--finalise",
        action="store_true",
        help="write the events of this release from now on: no older release can read the log then",
    )
    add(
        "--restored",
        action="store_true",
        help="the log was restored from a backup: cursors and checkpoints of the lost log are void",
    )
    add(
        "--shrink",
        action="store_true",
        help="also apply limits of [streams] that are narrower than now: what exceeds them is dropped",
    )
    add("--nats-auth", type=Path, metavar="DIR", help="write keys and grants here, and stop")
    add("--keys", type=Path, metavar="FILE", help="with --nats-auth: the keys of HTTP get keys too")
    add(
        "--callout",
        action=argparse.BooleanOptionalAction,
        help="with --nats-auth: clients may connect with keys of HTTP (`fairlead nats-callout`)",
    )
    for option, names, what in (
        ("--principal", "NAME:TENANT:ROLES", "a tenant's own client: service:billing:acme:service"),
        ("--tenant", "NAME", "a tenant whose clients the callout connects"),
        ("--without", "NAME:TENANT", "revoke a principal and delete its key"),
        ("--rotate", "NAME", "make a new key; the old one counts until --retire"),
        ("--retire", "NAME", "end the old key of a service or of NAME:TENANT"),
    ):
        add(option, action="append", default=[], metavar=names, help=f"with --nats-auth: {what}")
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Create or update the streams. A change that would lose data is refused."""
    out = stdout_console()
    if args.nats_auth is not None:
        changes = KeyChanges(
            tuple(args.principal),
            tuple(args.without),
            tuple(args.rotate),
            tuple(args.retire),
            args.keys,
            args.callout,
            tuple(args.tenant),
        )
        for line in write_keys(args.nats_auth, changes):
            out.print(line, markup=False, soft_wrap=True)
        return 0
    config = effective_config(args)
    address = config.nats.address("provision")
    address = address if args.nats is None else replace(address, url=args.nats)

    async def provision_once() -> None:
        await provision(
            address,
            replicas=args.replicas or config.nats.replicas,
            wake_deadline_s=config.runner.wake_deadline_s,
            pools=(config.tools.pool,),
            finalise=args.finalise,
            retention=Retention(**config.streams.model_dump()),
            shrink=args.shrink,
            progress=lambda line: out.print(line, markup=False),
        )

    def report(reason: str) -> None:
        out.print(f"waiting for NATS: {reason}", markup=False, soft_wrap=True)

    asyncio.run(repeat_until_available(provision_once, args.wait, report))
    if args.restored:
        begun = asyncio.run(record_restore(address))
        out.print(f"incarnation {begun.id}: begun after a restore", markup=False)
    return 0


async def repeat_until_available(
    attempt: Callable[[], Awaitable[None]], wait_s: float, report: Callable[[str], None]
) -> None:
    """Try again while the servers do not answer. A refused key or a wrong server does not get better. Raises LogError."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            await attempt()
        except (CredentialsRefused, ServerUnfit, SubjectRefused):
            raise
        except LogUnavailable as error:
            if time.monotonic() > deadline:
                raise
            report(str(error))
            await asyncio.sleep(PAUSE_S)
        else:
            return
