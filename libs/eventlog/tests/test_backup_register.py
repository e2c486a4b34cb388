"""The notes of backups: the last complete one and the last failed one, each replaced by the next."""

import pytest

from fairlead_eventlog.backup.backup_register import (
    FAILURE_CHARS_MAX,
    BackupAttempt,
    JetStreamBackupRegister,
    LastBackups,
)
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.grants.granted_names import LAST_BACKUP
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import provision
from fairlead_testing.nats import Server


async def test_each_kind_of_backup_has_its_last_note(eventlog: EventLog) -> None:
    await eventlog.backups.note(BackupAttempt(1.0))
    await eventlog.backups.note(BackupAttempt(2.0, "the disk is full"))
    await eventlog.backups.note(BackupAttempt(3.0))

    last = await eventlog.backups.read()

    assert last == LastBackups(BackupAttempt(3.0), BackupAttempt(2.0, "the disk is full"))


@pytest.mark.integration
async def test_a_note_is_bounded_and_one_that_nobody_can_read_is_none(own_server: Server) -> None:
    """Who writes nonsense there makes no projector unready: the alert says that no backup is known."""
    async with open_link(own_server.address, name="tests") as link:
        register = JetStreamBackupRegister(link)
        assert await register.read() == LastBackups(), "nothing is provisioned yet"
        await provision(own_server.address)
        await register.note(BackupAttempt(1.0, "x" * 10_000))
        await link.store(LAST_BACKUP, b"nonsense")

        last = await register.read()

    assert last == LastBackups(None, BackupAttempt(1.0, "x" * FAILURE_CHARS_MAX))
