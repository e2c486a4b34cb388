"""Drops privileges, asks the kernel to signal it when its parent dies, and executes a program.

Runs as a plain file (`python -I -S launcher.py PARENT SIGNAL UID -- command…`), so that it starts
fast and needs no package. The user changes first, because that clears the death signal.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
KEEP_USER = -1


def main(argv: list[str]) -> None:
    """Become UID unless it is -1, ask for SIGNAL when PARENT dies, execute the command."""
    parent, death_signal, uid = (int(argument) for argument in argv[:3])
    assert argv[3] == "--", "usage: launcher PARENT SIGNAL UID -- command…"
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if uid != KEEP_USER:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(argv[4], argv[4:])  # noqa: S606 - this process must become the command


if __name__ == "__main__":
    main(sys.argv[1:])
