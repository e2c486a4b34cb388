"""The doctor knows the last backup: its age, and the reason of a later failure."""

import pytest

from fairlead_cli.backup.backup_age import HOURS_MAX, judge_backups
from fairlead_eventlog.backup.backup_register import BackupAttempt, LastBackups
from fairlead_testing.deploy_files import DEPLOY

NOW = 1_000_000.0
FRESH = BackupAttempt(NOW - 3 * 3600)
OLD = BackupAttempt(NOW - 30 * 3600)
FAILED = BackupAttempt(NOW - 3600, "the disk is full")


@pytest.mark.parametrize(
    ("last", "status", "detail"),
    [
        (LastBackups(), "ok", "none was made"),
        (LastBackups(FRESH), "ok", "began 3 h ago"),
        (LastBackups(FRESH, OLD._replace(failure="x")), "ok", "began 3 h ago"),
        (LastBackups(OLD), "warn", "began 30 h ago"),
        (LastBackups(FRESH, FAILED), "warn", "the disk is full"),
        (LastBackups(None, FAILED), "warn", "none is complete"),
    ],
)
def test_the_doctor_says_how_old_the_last_backup_is(
    last: LastBackups, status: str, detail: str
) -> None:
    finding = judge_backups(last, NOW)

    assert finding.status == status
    assert detail in finding.detail


def test_the_doctor_warns_when_the_alert_does() -> None:
    assert f"> {HOURS_MAX} * 3600" in (DEPLOY / "observe/alerts.yaml").read_text()
