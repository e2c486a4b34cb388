"""Which file systems tell this machine of every change: those of its own disks and its memory."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs"}
    | {"reiserfs", "tmpfs", "xfs", "zfs"}
)
"""On all others, such as NFS, another machine may change a file without a word to this one."""
DEVICES_MAX: Final = 1024


def is_local(path: str) -> bool:
    """Whether the file system of a path is known to tell of every change. Raises OSError."""
    return _kind(Path(path).stat().st_dev) in LOCAL


@lru_cache(DEVICES_MAX)
def _kind(device: int) -> str | None:
    """The kind of the file system on a device; None if it is not known."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        fields = line.split(" ")
        if fields[2] == number:
            return fields[fields.index("-") + 1]
    return None
