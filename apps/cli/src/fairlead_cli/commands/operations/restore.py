"""`fairlead restore`: bring a backup into an empty deployment, or into a new local state."""

import argparse
import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from fairlead_cli.addresses import effective_config
from fairlead_cli.backup.directory import verify_directory
from fairlead_cli.backup.local_servers import run_servers
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.backup.restore import remove_marks, restore_streams
from fairlead_cli.embedded.state_directory import lock_owner
from fairlead_cli.errors import CommandError
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_eventlog.condition.retention import Retention
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.log_status import Incarnation
from fairlead_eventlog.status.status_record import record_restore
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config

Progress = Callable[[str], None]


def run(args: argparse.Namespace) -> int:
    """Verify the whole backup, then restore it, then begin another incarnation of the log."""
    notes = stderr_console()

    def progress(line: str) -> None:
        if not args.json:
            notes.print(line, style="dim", markup=False, soft_wrap=True)

    manifest = verify_directory(args.directory, progress)
    if args.check:
        return _report(args, manifest, None)
    return _report(args, manifest, asyncio.run(_restore(args, manifest, progress)))


async def _restore(args: argparse.Namespace, manifest: Manifest, progress: Progress) -> Incarnation:
    config = effective_config(args)
    if args.config is not None or os.environ.get("FAIRLEAD_NATS_URL"):
        replicas = args.replicas or config.nats.replicas
        address = config.nats.address("operator")
        return await _restore_into(
            address, args.directory, manifest, config, replicas=replicas, progress=progress
        )
    if lock_owner(args.state) is not None:
        raise CommandError(f"a stack runs on {args.state}: stop it, or choose another --state")
    async with run_servers(args.state, args.replicas or 1, config) as address:
        return await _restore_into(
            address,
            args.directory,
            manifest,
            config,
            replicas=args.replicas or 1,
            progress=progress,
        )


async def _restore_into(
    address: NatsAddress,
    root: Path,
    manifest: Manifest,
    config: Config,
    *,
    replicas: int,
    progress: Progress,
) -> Incarnation:
    await restore_streams(address, root, manifest, replicas=replicas, progress=progress)
    await provision(
        address,
        replicas=replicas,
        wake_deadline_s=config.runner.wake_deadline_s,
        pools=(config.tools.pool,),
        retention=Retention(**config.streams.model_dump()),
    )
    begun = await record_restore(address)
    await remove_marks(address)
    return begun


def _report(args: argparse.Namespace, manifest: Manifest, begun: Incarnation | None) -> int:
    if args.json:
        incarnation = None if begun is None else begun.id
        print_json({"id": manifest.id, "commits": manifest.commits, "incarnation": incarnation})
        return 0
    done = (
        "is whole"
        if begun is None
        else f"is restored as incarnation {begun.id}: start the services, and run `fairlead verify`"
    )
    stdout_console().print(
        f"backup {manifest.id} of {manifest.began} with {manifest.commits} commits {done}",
        markup=False,
        soft_wrap=True,
    )
    return 0
