"""Snapshots in memory."""

from fairlead_eventlog.register_ports import Snapshot
from fairlead_schema.subjects import Address


class MemorySnapshots:
    """Snapshots in a dictionary. A test may clear it, because snapshots are only a cache."""

    def __init__(self) -> None:
        self.snapshots: dict[Address, Snapshot] = {}

    async def load(self, at: Address) -> Snapshot | None:
        return self.snapshots.get(at)

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        self.snapshots[at] = snapshot

    async def remove(self, at: Address) -> None:
        self.snapshots.pop(at, None)

    async def remove_all(self) -> None:
        self.snapshots.clear()
