"""Directories that another user reaches: pytest closes its own to everybody else."""

import os
import tempfile
from pathlib import Path


def opened(place: Path) -> Path:
    """Let everybody pass through a directory and those of ours above it, as `up` would find it."""
    root = Path(tempfile.gettempdir())
    for one in (place, *place.parents):
        if one == root or one.stat().st_uid != os.getuid() or one == Path("/"):
            break
        one.chmod(0o755)
    return place
