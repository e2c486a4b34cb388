"""`fairlead provision`: create or update the streams, or write the keys and grants of NATS."""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from fairlead_cli.addresses import effective_config
from fairlead_cli.json_output import print_json
from fairlead_cli.nats_keys import KeyChanges, write_keys
from fairlead_cli.terminal import stdout_console
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.errors import CredentialsRefused, LogUnavailable, ServerUnfit, SubjectRefused
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.status_record import record_restore
from fairlead_service.config.configuration import load

PAUSE_S: Final = 1.0


def run(args: argparse.Namespace) -> int:
    """Create or update the streams. A change that would lose data is refused."""
    show = _show_json if args.json else _show
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
        pools = load(args.config, os.environ).pools
        for line in write_keys(args.nats_auth, changes, pools):
            show(line)
        return 0
    config = effective_config(args)
    address = config.nats.address("provision")
    address = address if args.nats is None else replace(address, url=args.nats)

    async def provision_once() -> None:
        await provision(
            address,
            replicas=args.replicas or config.nats.replicas,
            wake_deadline_s=config.runner.wake_deadline_s,
            pools=config.pools.names,
            finalise=args.finalise,
            retention=Retention(**config.streams.model_dump()),
            shrink=args.shrink,
            progress=show,
        )

    def report(reason: str) -> None:
        show(f"waiting for NATS: {reason}")

    asyncio.run(repeat_until_available(provision_once, args.wait, report))
    if args.restored:
        begun = asyncio.run(record_restore(address))
        show(f"incarnation {begun.id}: begun after a restore")
    return 0


def _show(line: str) -> None:
    stdout_console().print(line, markup=False, soft_wrap=True)


def _show_json(line: str) -> None:
    print_json({"change": line})


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
