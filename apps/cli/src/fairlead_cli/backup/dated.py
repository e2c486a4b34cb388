"""Backups in directories that are named by their time: which of them are too old."""

import re
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fairlead_cli.backup.manifest import MANIFEST
from fairlead_cli.errors import CommandError

_FORM: Final = "%Y%m%dT%H%M%SZ"
_NAME: Final = re.compile(r"\d{8}T\d{6}Z")


def dated_name(now: datetime) -> str:
    """The name of a backup that begins now, in UTC. Names sort by time."""
    return now.strftime(_FORM)


def find_newest(parent: Path) -> datetime | None:
    """When the newest complete backup below a directory began; None if there is none. Raises CommandError."""
    try:
        names = [path.parent.name for path in parent.glob(f"*/{MANIFEST}")]
    except OSError as error:
        raise CommandError(f"{parent} cannot be read: {error.strerror}") from error
    newest = max((name for name in names if _NAME.fullmatch(name)), default=None)
    return None if newest is None else datetime.strptime(newest, _FORM).replace(tzinfo=UTC)


def find_expired(names: Iterable[str], complete: Iterable[str], keep: int) -> list[str]:
    """The names that are older than the newest `keep` complete backups.

    A backup that was cut off counts for nothing, and goes when it is older than one that is kept.
    """
    kept = sorted(name for name in complete if _NAME.fullmatch(name))[-keep:]
    if len(kept) < keep:
        return []
    return sorted(name for name in names if _NAME.fullmatch(name) and name < kept[0])


def remove_expired(parent: Path, keep: int) -> list[Path]:
    """Remove old backups below a directory. Raises CommandError; the new backup is complete then."""
    try:
        names = [path.name for path in parent.iterdir() if path.is_dir()]
        complete = [name for name in names if (parent / name / MANIFEST).exists()]
        old = [parent / name for name in find_expired(names, complete, keep)]
        for path in old:
            # Without its manifest a directory is no backup, however far the removal comes.
            (path / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(path)
    except OSError as error:
        raise CommandError(
            f"the backup is complete, and older ones cannot be removed: {error}"
        ) from error
    return old
