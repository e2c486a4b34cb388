"""Restores a verified backup: into the configured servers, or into a new local state."""

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from fairlead_cli.addresses import effective_config
from fairlead_cli.backup.local_servers import run_servers
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.backup.restore import remove_marks, restore_streams
from fairlead_cli.deployment.server_wait import repeat_until_available
from fairlead_cli.embedded.state_directory import lock_owner
from fairlead_cli.errors import CommandError
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.log_status import Incarnation
from fairlead_eventlog.status.status_record import record_restore
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config

Progress: TypeAlias = Callable[[str], None]


async def restore_deployment(
    args: argparse.Namespace, manifest: Manifest, progress: Progress
) -> Incarnation:
    """Restore a verified backup, and begin another incarnation of the log. Raises CommandError and LogError."""
    config = effective_config(args)
    if args.config is not None or os.environ.get("FAIRLEAD_NATS_URL"):
        replicas = args.replicas or config.nats.replicas
        address = config.nats.address("operator")
        return await _restore_into(
            args, address, manifest, config, replicas=replicas, progress=progress
        )
    if lock_owner(args.state) is not None:
        raise CommandError(f"a stack runs on {args.state}: stop it, or choose another --state")
    async with run_servers(args.state, args.replicas or 1, config) as address:
        return await _restore_into(
            args, address, manifest, config, replicas=args.replicas or 1, progress=progress
        )


async def _restore_into(
    args: argparse.Namespace,
    address: NatsAddress,
    manifest: Manifest,
    config: Config,
    *,
    replicas: int,
    progress: Progress,
) -> Incarnation:
    """Each step may be repeated: what it has done stays."""

    def report(reason: str) -> None:
        progress(f"waiting for NATS: {reason}")

    root, wait_s = args.directory, args.wait
    for step in (
        partial(restore_streams, address, root, manifest, replicas=replicas, progress=progress),
        partial(
            provision,
            address,
            replicas=replicas,
            wake_deadline_s=config.runner.wake_deadline_s,
            pools=config.pools.names,
            retention=Retention(**config.streams.model_dump()),
        ),
    ):
        await repeat_until_available(step, wait_s, report)
    begun = await repeat_until_available(partial(record_restore, address), wait_s, report)
    await repeat_until_available(partial(remove_marks, address), wait_s, report)
    return begun
