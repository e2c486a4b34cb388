"""Which dated backups go: never a newer one, never the last good ones, never another directory."""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli.__main__ import main
from fairlead_cli.backup.dated import dated_name, find_expired, remove_expired
from fairlead_cli.backup.manifest import MANIFEST

EARLIEST, LATEST = datetime(2020, 1, 1), datetime(2030, 1, 1)  # noqa: DTZ001 - hypothesis takes naive times
TIMES = st.lists(st.datetimes(EARLIEST, LATEST), unique=True)


def test_names_sort_by_time() -> None:
    earlier = dated_name(datetime(2026, 11, 18, 9, 0, 1, tzinfo=UTC))

    assert earlier == "20261118T090001Z"
    assert earlier < dated_name(datetime(2026, 11, 18, 10, 0, 0, tzinfo=UTC))


@given(TIMES, TIMES, st.integers(1, 5))
def test_the_newest_complete_backups_stay(
    whole: list[datetime], cut_off: list[datetime], keep: int
) -> None:
    complete = {dated_name(time) for time in whole}
    names = complete | {dated_name(time) for time in cut_off} | {"notes", "20261118"}

    gone = set(find_expired(names, complete, keep))

    assert len(complete - gone) >= min(keep, len(complete))
    assert not gone & {"notes", "20261118"}
    assert all(old < kept for old in gone for kept in sorted(complete)[-keep:])


def test_only_old_backups_are_removed(tmp_path: Path) -> None:
    for name in ("20260101T000000Z", "20260102T000000Z", "20260103T000000Z"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).write_text("{}")
    (tmp_path / "20251231T000000Z").mkdir()
    (tmp_path / "letters").mkdir()

    removed = remove_expired(tmp_path, 2)

    assert [path.name for path in removed] == ["20251231T000000Z", "20260101T000000Z"]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"20260102T000000Z", "20260103T000000Z", "letters"}


def test_keep_is_for_dated_backups_alone(tmp_path: Path) -> None:
    """`--keep 1` without `--dated` must not look at what else is in the directory."""
    assert main(["backup", str(tmp_path), "--keep", "1"]) == 2
