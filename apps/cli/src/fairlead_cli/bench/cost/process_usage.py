"""Reads the processor time and the context switches of processes from the kernel."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

_PROC = Path("/proc")


class ProcessorUsage(NamedTuple):
    """The processor time of all threads of some processes, and how often they waited."""

    cpu_ms: float = 0.0
    switches: int = 0

    def plus(self, other: Self) -> "ProcessorUsage":
        return ProcessorUsage(self.cpu_ms + other.cpu_ms, self.switches + other.switches)

    def minus(self, other: Self) -> "ProcessorUsage":
        return ProcessorUsage(self.cpu_ms - other.cpu_ms, self.switches - other.switches)


def read_usage(pids: Mapping[str, Iterable[int]]) -> dict[str, ProcessorUsage]:
    """The usage of each named group of processes, with all their children."""
    children = _children()
    return {
        name: _sum(_usage(pid) for parent in parents for pid in _descendants(parent, children))
        for name, parents in pids.items()
    }


def difference(
    before: Mapping[str, ProcessorUsage], after: Mapping[str, ProcessorUsage]
) -> dict[str, ProcessorUsage]:
    """What each group used in between."""
    return {name: usage.minus(before.get(name, ProcessorUsage())) for name, usage in after.items()}


def _sum(usages: Iterable[ProcessorUsage]) -> ProcessorUsage:
    total = ProcessorUsage()
    for usage in usages:
        total = total.plus(usage)
    return total


def _usage(pid: int) -> ProcessorUsage:
    """The scheduler counts nanoseconds per thread; a thread that has ended is not counted."""
    total = ProcessorUsage()
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                nanoseconds = int((task / "schedstat").read_text().split()[0])
                total = total.plus(ProcessorUsage(nanoseconds / 1e6, _voluntary_switches(task)))
    return total


def _voluntary_switches(task: Path) -> int:
    for line in (task / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "voluntary_ctxt_switches":
            return int(value)
    return 0


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                # The name of the program may hold spaces. The parent is the second field after it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    return children


def _descendants(pid: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    yield pid
    for child in children.get(pid, ()):
        yield from _descendants(child, children)
