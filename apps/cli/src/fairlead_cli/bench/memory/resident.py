"""Reads the memory of processes from the kernel."""

from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_KILOBYTES: Final = 1024


class ResidentMemory(NamedTuple):
    """The memory of one process in MiB."""

    rss: float
    """With every page that it shares with others."""
    pss: float | None
    """With its part of the shared pages; only root may read it of a service."""


def read_memory(pid: int) -> ResidentMemory:
    """The memory of a process now. Raises OSError if it is gone."""
    status = _fields((_PROC / str(pid) / "status").read_text())
    rss = _mebibytes(status["VmRSS"])
    try:
        rollup = _fields((_PROC / str(pid) / "smaps_rollup").read_text())
    except PermissionError:
        return ResidentMemory(rss, None)
    return ResidentMemory(rss, _mebibytes(rollup["Pss"]))


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}


def _mebibytes(value: str) -> float:
    """The kernel says `1234 kB` and means KiB."""
    return int(value.split(maxsplit=1)[0]) / _KILOBYTES
