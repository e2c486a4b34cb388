"""Drafts: new bytes on disk before they have the name that is meant for them.

Where the file system can do that they have no name at all until then, so a writer that is killed
leaves nothing behind.
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
def write_draft(parent: int, text: bytes, like: os.stat_result | None) -> Iterator[str]:
    """New bytes on disk, by a path that is gone afterwards."""
    descriptor, draft = _create_draft(parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            if like is not None:
                _copy_owner_and_mode(descriptor, like)
            os.fsync(descriptor)
            yield draft
    finally:
        if not draft.startswith(_FILES):
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=parent)


def _create_draft(parent: int) -> tuple[int, str]:
    """A new file without a name; with a hidden one where there is no other way."""
    if _NAMELESS:
        with suppress(OSError):
            descriptor = os.open(".", _NAMELESS, 0o666, dir_fd=parent)
            return descriptor, f"{_FILES}{descriptor}"
    draft = _hidden_name()
    return os.open(draft, NEW, 0o666, dir_fd=parent), draft


def name_draft(parent: int, draft: str) -> str:
    """A name of the draft that it can be renamed from; one that has none is given one."""
    if not draft.startswith(_FILES):
        return draft
    named = _hidden_name()
    link_draft(parent, draft, named)
    return named


def _hidden_name() -> str:
    return f".{secrets.token_hex(8)}.fairlead"


def link_draft(parent: int, draft: str, name: str) -> None:
    """Give a draft a name that nothing has yet. Raises FileExistsError."""
    follow = draft.startswith(_FILES)
    os.link(draft, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=follow)


def _copy_owner_and_mode(descriptor: int, like: os.stat_result) -> None:
    """The new file belongs to whom the old one did, as far as this process may say so."""
    with suppress(PermissionError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
