"""The last commit of the worktree's own repository, read from its files: no configuration takes part."""

import re
from pathlib import Path
from typing import Final

from fairlead_tools.file_snapshots.seed import OwnRepository

LINKS_MAX: Final = 5
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_REF: Final = re.compile(r"refs/[^\0\n]+")


def find_head(own: OwnRepository) -> str | None:
    """The name of the commit; None before the first one. Raises OSError, ValueError."""
    text = _read(own.directory / "HEAD")
    for _ in range(LINKS_MAX):
        if text is None or _COMMIT.fullmatch(text):
            return text
        name = text.removeprefix("ref: ")
        if not _REF.fullmatch(name) or ".." in name.split("/"):
            raise ValueError(f"HEAD of {own.directory} names no branch")
        found = _read(own.directory / name) or _read(own.common / name)
        text = found or _find_packed(own.common / "packed-refs", name)
    raise ValueError(f"HEAD of {own.directory} names no commit")


def _read(path: Path) -> str | None:
    return path.read_text().strip() or None if path.is_file() else None


def _find_packed(path: Path, name: str) -> str | None:
    """The commit of a branch among those that git has packed into one file."""
    text = _read(path)
    lines = (line.split(" ", 1) for line in (text or "").splitlines() if " " in line)
    return next((commit for commit, ref in lines if ref == name), None)
