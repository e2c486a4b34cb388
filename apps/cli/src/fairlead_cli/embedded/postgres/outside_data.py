"""Moves data of Postgres into the state directory: earlier releases kept root's data outside.

Such a state directory has a file `postgres.name` with the name of a directory in `/var/lib/fairlead`.
"""

import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import child_process
from fairlead_cli.embedded.state_directory import StateDirectory

OUTSIDE: Final = Path("/var/lib/fairlead")
NAME_FILE: Final = "postgres.name"
DATA_NAMES: Final = "postgres-*"
# Nothing else may be moved or removed, whatever the file says.
DATA_NAME: Final = re.compile(r"postgres-[0-9a-f]{16}")
PROGRAM_NAMES: Final = "pginstall*"


async def move_outside_data(state: StateDirectory, data: Path) -> Path | None:
    """Move the data in. Returns where the data was; None when there was none."""
    name_file = state.root / NAME_FILE
    if not name_file.exists():
        return None
    name = name_file.read_text(errors="replace").strip()
    if DATA_NAME.fullmatch(name) is None:
        return None
    old = OUTSIDE / name
    await _end_server(old / "data")
    moved = _move(old / "data", data)
    shutil.rmtree(old, ignore_errors=True)
    name_file.unlink()
    _remove_unused_programs()
    return old if moved else None


def _move(old: Path, new: Path) -> bool:
    """Move a directory unless the new one exists. Returns whether it was moved."""
    if new.exists() or not old.is_dir():
        return False
    # A copy between two disks may be cut short: only a whole copy gets the final name.
    incoming = new.with_name("incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    shutil.move(old, incoming)
    incoming.rename(new)
    return True


async def _end_server(data: Path) -> None:
    with suppress(OSError, ValueError, IndexError):
        pid = int((data / "postmaster.pid").read_text().splitlines()[0])
        await child_process.end_orphan(pid, str(data), signal.SIGINT, grace_s=15.0)


def _remove_unused_programs() -> None:
    """Remove the copies of Postgres' programs when no data is left that they may serve."""
    if any(OUTSIDE.glob(DATA_NAMES)):
        return
    for copy in OUTSIDE.glob(PROGRAM_NAMES):
        shutil.rmtree(copy, ignore_errors=True)
    with suppress(OSError):
        OUTSIDE.rmdir()
