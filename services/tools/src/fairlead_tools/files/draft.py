"""Drafts: new bytes on disk before they get their final name.

Where the file system allows it a draft has no name at all, so a killed writer leaves nothing behind.
"""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_FILES: Final = "/proc/self/fd/"
_NAMELESS: Final = (
    getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | os.O_CLOEXEC if os.path.isdir(_FILES) else 0  # noqa: PTH112
)
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def write_draft(
    parent: int, text: bytes, like: os.stat_result | None, *, sync: bool = True
) -> Iterator[str]:
    """Write new bytes to disk and yield a path to them, which is gone after the block."""
    descriptor, draft = _create_draft(parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            if like is not None:
                _copy_owner_and_mode(descriptor, like)
            if sync:
                os.fsync(descriptor)
            yield draft
    finally:
        if not draft.startswith(_FILES):
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=parent)


def _create_draft(parent: int) -> tuple[int, str]:
    """A new file without a name, or with a hidden name where the file system needs one."""
    if _NAMELESS:
        with suppress(OSError):
            descriptor = os.open(".", _NAMELESS, 0o666, dir_fd=parent)
            return descriptor, f"{_FILES}{descriptor}"
    draft = _hidden_name()
    return os.open(draft, NEW, 0o666, dir_fd=parent), draft


def name_draft(parent: int, draft: str) -> str:
    """A name from which the draft can be renamed. A draft without a name gets a hidden one."""
    if not draft.startswith(_FILES):
        return draft
    name = _hidden_name()
    link_draft(parent, draft, name)
    return name


def _hidden_name() -> str:
    return f".{secrets.token_hex(8)}.fairlead"


def link_draft(parent: int, draft: str, name: str) -> None:
    """Give a draft an unused name. Raises FileExistsError."""
    follow = draft.startswith(_FILES)
    os.link(draft, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=follow)


def _copy_owner_and_mode(descriptor: int, like: os.stat_result) -> None:
    """Give the new file the owner and mode of the old one, as far as permissions allow."""
    with suppress(PermissionError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
