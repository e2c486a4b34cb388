"""Changes the user, asks the kernel to signal it when its parent dies, and executes a program.

Runs as a plain file (`python -I -S launcher.py PARENT SIGNAL USER -- command…`), so that it starts
fast and needs no package. The user changes first, because that clears the death signal.

USER says how root becomes a user that a server accepts. A namespace shows root to the program as
`nobody`, so files stay root's. Where the kernel forbids namespaces, the program becomes `nobody` and
keeps one right of root: to pass closed directories.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000
NOBODY = 65534
KEEP_USER = "keep"
NAMESPACE = "namespace"
BECOME_NOBODY = "nobody"


def main(argv: list[str]) -> None:
    """Become USER, ask for SIGNAL when PARENT dies, execute the command."""
    parent, death_signal, user = int(argv[0]), int(argv[1]), argv[2]
    assert argv[3] == "--", "usage: launcher PARENT SIGNAL USER -- command…"
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if user != KEEP_USER:
        if libc is None:
            sys.exit("only Linux lets root start a server as another user")
        enter_namespace(libc) if user == NAMESPACE else become_nobody(libc)
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(argv[4], argv[4:])  # noqa: S606 - this process must become the command


def enter_namespace(libc: ctypes.CDLL) -> None:
    """Enter a user namespace in which the own user is called `nobody` and has no rights of root."""
    uid, gid = os.geteuid(), os.getegid()
    _check(libc.unshare(CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        # One write of the whole text: the kernel takes no second one.
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib imports slowly
            file.write(text)


def become_nobody(libc: ctypes.CDLL) -> None:
    """Become `nobody`, and keep the right to pass directories that are closed to this user."""
    _check(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    right = 1 << CAP_DAC_OVERRIDE
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    # Effective, permitted, inheritable; then the same for the rights above 31.
    _check(libc.capset(header, (ctypes.c_uint32 * 6)(right, right, right, 0, 0, 0)))
    _check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        sys.exit(f"the kernel refuses to change the user: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
