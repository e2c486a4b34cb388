"""A backup that tells the deployment of its end, so that an alert misses the next one."""

import time
from contextlib import suppress
from pathlib import Path

from fairlead_cli.backup.backup import Progress, write_backup
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.errors import CommandError
from fairlead_eventlog.backup.backup_register import BackupAttempt, JetStreamBackupRegister
from fairlead_eventlog.errors import LogError, SubjectRefused
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.identity.nats_address import NatsAddress


async def write_noted_backup(address: NatsAddress, root: Path, progress: Progress) -> Manifest:
    """Write a backup, and leave a note that it is complete or failed. Raises CommandError, LogError."""
    began = time.time()
    try:
        manifest = await write_backup(address, root, progress)
    except (CommandError, LogError) as error:
        with suppress(LogError):  # The failure of the backup says why.
            await _leave_note(address, BackupAttempt(began, str(error)))
        raise
    try:
        await _leave_note(address, BackupAttempt(began))
    except SubjectRefused as error:
        progress(
            f"the deployment does not know of this backup ({error}): write the grants anew with"
            " `fairlead secrets` or `fairlead provision --nats-auth`, and reload the nats-servers"
        )
    except LogError as error:
        progress(f"the deployment does not know of this backup: {error}")
    return manifest


async def _leave_note(address: NatsAddress, attempt: BackupAttempt) -> None:
    async with open_link(address, name="fairlead-backup") as link:
        await JetStreamBackupRegister(link).note(attempt)
