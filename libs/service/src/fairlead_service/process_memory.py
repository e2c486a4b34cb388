"""Keeps the memory and the environment of this process from other processes of the same user."""

import ctypes
import sys
from typing import Final

PR_SET_DUMPABLE: Final = 4


def keep_memory_private() -> None:
    """Forbid other processes of this user to read or debug this process. Root may still do so.

    A process may contain keys of providers, and commands of a model may run as the same user.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
