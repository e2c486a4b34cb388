"""Creates or updates the streams of a deployment."""

import argparse
import asyncio
from collections.abc import Callable

from fairlead_cli.deployment.server_wait import repeat_until_available
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.status_record import record_restore
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config


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
