"""The state directory: what lives where, who may use it, and what the last start left there."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlead_cli.errors import DiskFull, StateLocked, StateUnusable

DISK_FREE_MB_MIN: Final = 200
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class State:
    """A directory that holds everything one stack keeps."""

    root: Path

    @property
    def nats(self) -> Path:
        return self.root / "nats"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def config(self) -> Path:
        """The configuration that `up` generated, when it had to."""
        return self.root / "fairlead.toml"

    def log_path(self, name: str, index: int = 0) -> Path:
        return self.logs / f"{name}-{index}.log"


def prepare(root: Path) -> State:
    """Make the directory and check that it can hold our data. Raises StateUnusable, DiskFull."""
    state = State(root.absolute())
    try:
        for directory in (state.root, state.nats, state.logs):
            directory.mkdir(parents=True, exist_ok=True, mode=0o755)
        (state.root / ".gitignore").write_text("*\n")
    except OSError as error:
        raise StateUnusable(
            f"{error.filename}: {error.strerror}: choose a writable directory with --state"
        ) from error
    free_mb = shutil.disk_usage(state.root).free // MEGABYTE
    if free_mb < DISK_FREE_MB_MIN:
        raise DiskFull(state.root, free_mb, DISK_FREE_MB_MIN)
    for log in state.logs.glob("*.log"):
        if log.stat().st_size > LOG_BYTES_MAX:
            log.replace(log.with_suffix(".log.1"))
    return state


@contextmanager
def locked(state: State) -> Iterator[None]:
    """Be the only stack on this state. The kernel frees the lock, however we end."""
    with (state.root / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip()
            raise StateLocked(state.root, int(owner) if owner.isdigit() else None) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def lock_owner(root: Path) -> int | None:
    """The pid of the stack that runs on this state now, if one does."""
    try:
        with (root / "lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = (root / "lock").read_text().strip()
        return int(owner) if owner.isdigit() else -1
    except OSError:
        return None
    return None


def remember(state: State, addresses: dict[str, Any]) -> None:
    """Leave the addresses for other commands on this machine."""
    (state.root / "run.json").write_text(json.dumps(addresses) + "\n")


def forget(state: State) -> None:
    """The addresses are no longer true."""
    (state.root / "run.json").unlink(missing_ok=True)


def recall(root: Path) -> dict[str, Any]:
    """The addresses of the stack that runs on this state; empty when none does."""
    if lock_owner(root) is None:
        return {}
    with suppress(OSError, ValueError):
        found = json.loads((root / "run.json").read_text())
        return found if isinstance(found, dict) else {}
    return {}
