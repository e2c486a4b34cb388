"""Directories that another user reaches: pytest closes its own to everybody else."""

import os
import tempfile
from pathlib import Path


def open_to_others(place: Path) -> Path:
    """Let everybody pass through a directory and those of ours above it, as `up` would find it."""
    root = Path(tempfile.gettempdir())
    for directory in (place, *place.parents):
        if directory == root or directory.stat().st_uid != os.getuid() or directory == Path("/"):
            break
        directory.chmod(0o755)
    return place
