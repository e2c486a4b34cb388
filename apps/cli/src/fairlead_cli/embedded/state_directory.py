"""The state directory of a stack: its layout, its lock, and the addresses of the running stack."""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlead_cli.embedded.private_files import (
    DIRECTORY_MODE,
    close_files,
    make_private_directory,
    open_private,
    write_private,
)
from fairlead_cli.errors import DiskFull, StateLocked, StateUnusable

DISK_FREE_MB_MIN: Final = 200
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory that holds all files of one stack. Other users may not enter it."""

    root: Path

    @property
    def nats(self) -> Path:
        return self.root / "nats"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def passwords(self) -> Path:
        """One file for each role of Postgres, in the form that Postgres clients read."""
        return self.postgres / "passwords"

    @property
    def token(self) -> Path:
        """The secret with which commands on this machine call the gateway."""
        return self.root / "token"

    @property
    def tools(self) -> Path:
        """Temporary files of the tools service."""
        return self.root / "tools"

    @property
    def cache(self) -> Path:
        """Downloads of the tools service."""
        return self.root / "cache"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def config(self) -> Path:
        """The configuration that `up` generates when it gets none."""
        return self.root / "fairlead.toml"

    @property
    def keys(self) -> Path:
        """The digests of the keys that the gateway accepts."""
        return self.root / "keys.json"

    @property
    def cookie_key(self) -> Path:
        """The key that seals the cookies of the console."""
        return self.root / "cookie.key"

    def directories(self) -> tuple[Path, ...]:
        """All directories that the services and servers use."""
        return (self.nats, self.postgres, self.passwords, self.tools, self.cache, self.logs)

    def log_path(self, name: str, index: int = 0) -> Path:
        return self.logs / f"{name}-{index}.log"


def prepare_state(root: Path) -> StateDirectory:
    """Create the directory, close it to other users, check its space, rotate large logs.

    Raises StateUnusable, DiskFull.
    """
    state = StateDirectory(root.absolute())
    try:
        state.root.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
        _check_owner(state)
        if _is_ours(state.root):
            state.root.chmod(DIRECTORY_MODE)
        for directory in state.directories():
            make_private_directory(directory)
        _ignore_files(state.root / ".gitignore")
        close_files(state.root / "lock", state.root / "run.json", state.token)
        close_files(*state.logs.iterdir(), *state.nats.iterdir())
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


def _check_owner(state: StateDirectory) -> None:
    """Refuse the state of another user: its files would then serve neither user.

    Raises StateUnusable.
    """
    lock = state.root / "lock"
    owner = lock.stat().st_uid if lock.exists() else os.geteuid()
    if owner != os.geteuid():
        raise StateUnusable(
            f"{state.root} belongs to the user with the uid {owner}: run fairlead as that user,"
            " or choose another directory with --state"
        )


def _ignore_files(path: Path) -> None:
    """Keep the state out of git. A file that people wrote stays: `--state .` is a project."""
    with suppress(FileExistsError), open(path, "x", opener=open_private) as file:
        file.write("*\n")


def _is_ours(root: Path) -> bool:
    """Whether the directory is for a stack alone: `--state /tmp` must not close `/tmp` to others."""
    about = root.stat()
    if about.st_uid != os.geteuid() or about.st_mode & stat.S_ISVTX:
        return False
    return (root / "lock").exists() or not any(root.iterdir())


@contextmanager
def lock_state(state: StateDirectory) -> Iterator[None]:
    """Hold the lock of the state directory. The kernel frees the lock however this process ends."""
    path = state.root / "lock"
    with open(path, "a+", opener=open_private) as lock:
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
    """The pid of the stack that runs on this state; None when none does."""
    try:
        with (root / "lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = (root / "lock").read_text().strip()
        return int(owner) if owner.isdigit() else -1
    except OSError:
        return None
    return None


def save_addresses(state: StateDirectory, addresses: dict[str, Any]) -> None:
    """Save the addresses for other commands on this machine."""
    write_private(state.root / "run.json", json.dumps(addresses) + "\n")


def delete_addresses(state: StateDirectory) -> None:
    """Delete the saved addresses, because they are no longer valid."""
    (state.root / "run.json").unlink(missing_ok=True)


def load_addresses(root: Path) -> dict[str, Any]:
    """The saved addresses of the stack that runs on this state; empty when none does."""
    if lock_owner(root) is None:
        return {}
    with suppress(OSError, ValueError):
        addresses = json.loads((root / "run.json").read_text())
        return addresses if isinstance(addresses, dict) else {}
    return {}
