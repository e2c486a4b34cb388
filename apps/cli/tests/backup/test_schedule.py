"""Backups at an interval: when the next one is due, and what a failure does."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.backup import schedule
from fairlead_cli.backup.dated import dated_name, find_newest
from fairlead_cli.backup.manifest import MANIFEST
from fairlead_cli.backup.schedule import repeat_backup, seconds_until_due
from fairlead_cli.errors import CommandError

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
DAY = timedelta(hours=24)


@pytest.mark.parametrize(
    ("age", "wait_s"),
    [(None, 0), (timedelta(hours=30), 0), (timedelta(hours=23), 3600), (timedelta(hours=-1), 0)],
    ids=["none yet", "overdue", "not due", "of the future"],
)
def test_the_next_backup_is_due_an_interval_after_the_newest(
    age: timedelta | None, wait_s: float
) -> None:
    newest = None if age is None else NOW - age

    assert seconds_until_due(newest, DAY, NOW) == wait_s


def test_the_newest_backup_is_one_that_is_complete(tmp_path: Path) -> None:
    for name in ("20260101T000000Z", "20260102T000000Z", "20260103T000000Z", "zzz"):
        (tmp_path / name).mkdir()
    for name in ("20260101T000000Z", "20260102T000000Z", "zzz"):
        (tmp_path / name / MANIFEST).write_text("{}")

    assert find_newest(tmp_path) == datetime(2026, 1, 2, tzinfo=UTC)
    assert find_newest(tmp_path / "missing") is None


async def test_a_failure_is_told_and_the_backup_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ended with each failure would be a crash loop."""
    monkeypatch.setattr(schedule, "RETRY_S", 0.0)
    attempts, is_done = 0, asyncio.Event()
    told: list[str] = []

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise CommandError("the disk is full")
        made = tmp_path / dated_name(datetime.now(UTC))
        made.mkdir()
        (made / MANIFEST).write_text("{}")
        is_done.set()

    task = asyncio.create_task(repeat_backup(attempt, tmp_path, DAY, told.append))
    async with asyncio.timeout(5):
        await is_done.wait()
    await asyncio.sleep(0.05)
    task.cancel()

    assert told == ["the disk is full"]
    assert attempts == 2, "the next one is due tomorrow"


def test_an_interval_is_for_dated_backups(tmp_path: Path) -> None:
    assert main(["backup", str(tmp_path), "--every", "24"]) == 2


@pytest.mark.parametrize("hours", ["soon", "0", "-1", "nan", "inf"])
def test_an_interval_is_a_positive_number(
    tmp_path: Path, hours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", str(tmp_path), "--dated", "--every", hours]) == 2

    assert f"{hours} is not a number greater than zero" in capsys.readouterr().err
