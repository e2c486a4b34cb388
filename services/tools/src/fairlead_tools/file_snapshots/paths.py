"""Paths inside a tree, as bytes: which may be stored, and which may be written."""

import os
from pathlib import Path

from fairlead_tools.files.private import PRIVATE


def is_safe(path: bytes) -> bool:
    """Whether a path stays inside its tree, and outside of every repository."""
    parts = path.split(b"/")
    return b"\0" not in path and not any(
        part in {b"", b".", b".."} or part.lower() == b".git" for part in parts
    )


def is_private(directory: Path, path: bytes) -> bool:
    """Whether no tool may change a path of a directory without links."""
    return PRIVATE.is_read_only(directory / os.fsdecode(path))
