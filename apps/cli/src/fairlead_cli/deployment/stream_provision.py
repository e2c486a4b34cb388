"""Creates or updates the streams of a deployment, and waits for its servers."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.errors import CredentialsRefused, LogUnavailable, ServerUnfit, SubjectRefused
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.status_record import record_restore
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config

PAUSE_S: Final = 1.0


def provision_streams(
    args: argparse.Namespace, config: Config, address: NatsAddress, show: Callable[[str], None]
) -> None:
    """Create or update the streams, and note a restore if the arguments say so. Raises LogError."""

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
