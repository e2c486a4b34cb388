"""What the doctor says of backups: when the last one began, and why a later one failed."""

import time
from typing import Final

from fairlead_cli.checks import Finding
from fairlead_eventlog.backup.backup_register import JetStreamBackupRegister, LastBackups
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.identity.nats_address import NatsAddress

HOURS_MAX: Final = 26
"""As long as the alert FairleadBackupOverdue waits."""
MEND: Final = "run `fairlead backup DIR`, and look at what makes the backups"


async def check_backups(address: NatsAddress, *, timeout_s: float) -> Finding | None:
    """Is there a backup of these days?"""
    try:
        async with open_link(address, name="fairlead-doctor", timeout_s=timeout_s) as link:
            return judge_backups(await JetStreamBackupRegister(link).read(), time.time())
    except LogError:
        return None  # The check of the connection says why.


def judge_backups(last: LastBackups, now: float) -> Finding:
    """A deployment without any backup is told so and not warned: it may be for a day."""
    complete, failed = last
    if complete is None and failed is None:
        return Finding("backup", "ok", "none was made: `fairlead backup DIR` makes one")
    hours = None if complete is None else (now - complete.began) / 3600
    detail = "none is complete" if hours is None else f"the last one began {hours:.0f} h ago"
    if failed is not None and (complete is None or failed.began > complete.began):
        return Finding(
            "backup", "warn", f"{detail}, and a later one failed: {failed.failure}", MEND
        )
    if hours is not None and hours > HOURS_MAX:
        return Finding("backup", "warn", detail, MEND)
    return Finding("backup", "ok", detail)
