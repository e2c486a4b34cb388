"""Shows a fork in `ps` and `/proc` with its own command line and environment, as if it had been executed."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

# Where `/proc/self/stat` says in which memory the kernel looks, counted from behind the name.
_ADDRESSES: Final = slice(45, 49)
ROOM_VARIABLE: Final = "FAIRLEAD_FORK_ROOM"
# The memory has the size of the server's own environment, so the server gets one large variable.
ROOM_BYTES: Final = 64 * 1024


def environment_fits(env: Mapping[str, str]) -> bool:
    """Whether a fork can show this environment."""
    return len(_environment_block(env)) <= ROOM_BYTES


def show_start(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Overwrite the command line and environment that the kernel shows of this process.

    The variables of `os.environ` must have been replaced before: none may lie in that memory any more.
    """
    about = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    argv_start, argv_end, env_start, env_end = map(int, about[_ADDRESSES])
    _overwrite(argv_start, argv_end, b"".join(text.encode() + b"\0" for text in argv))
    _overwrite(env_start, env_end, _environment_block(env))


def _environment_block(env: Mapping[str, str]) -> bytes:
    return b"".join(f"{name}={value}".encode() + b"\0" for name, value in env.items())


def _overwrite(start: int, end: int, block: bytes) -> None:
    size = end - start
    if start and size:
        ctypes.memmove(start, block[: size - 1].ljust(size, b"\0"), size)
