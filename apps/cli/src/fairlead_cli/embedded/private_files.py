"""Files and directories that only their owner may read."""

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def open_private(path: str, flags: int) -> int:
    """An opener for `open`: a new file gets the closed mode from its first moment."""
    return os.open(path, flags, FILE_MODE)


def append_private(path: Path) -> BinaryIO:
    """Open a file for appending. A new file is closed to others."""
    return open(path, "ab", opener=open_private)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads: the whole text, or after a crash the old file."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with open(fresh, "x", opener=open_private) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def make_private_directory(path: Path) -> None:
    """Create a directory, and close it to others. Raises OSError."""
    path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
    path.chmod(DIRECTORY_MODE)


def close_files(*paths: Path) -> None:
    """Close the files that an earlier release left open to others."""
    for path in paths:
        if path.is_file() and not path.is_symlink():
            # The file may be rotated or deleted meanwhile.
            with suppress(FileNotFoundError):
                path.chmod(FILE_MODE)
