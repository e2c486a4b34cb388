"""Snapshots in memory."""

from fairlead_eventlog.ports import (
    Snapshot,
)
from fairlead_schema.subjects import Address


class MemorySnapshots:
    """Snapshots in a dictionary; clear it to prove that it is only a cache."""

    def __init__(self) -> None:
        self.kept: dict[Address, Snapshot] = {}

    async def load(self, at: Address) -> Snapshot | None:
        return self.kept.get(at)

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        self.kept[at] = snapshot

    async def remove(self, at: Address) -> None:
        self.kept.pop(at, None)
