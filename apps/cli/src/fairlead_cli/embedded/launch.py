"""Becomes another program, after tying its life to its parent's and dropping privileges.

Runs as a plain file (`python -I -S launch.py PARENT SIGNAL UID -- command…`), so that it starts
fast and needs nothing installed. A change of user clears the death signal: hence the order.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
KEEP_USER = -1


def main(argv: list[str]) -> None:
    """Drop to UID unless it is -1, ask for SIGNAL when PARENT dies, exec the command."""
    parent, death_signal, uid = (int(argument) for argument in argv[:3])
    assert argv[3] == "--", "usage: launch PARENT SIGNAL UID -- command…"
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if uid != KEEP_USER:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(argv[4], argv[4:])  # noqa: S606 - becoming the command is the point


if __name__ == "__main__":
    main(sys.argv[1:])
