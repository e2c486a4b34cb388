"""The public feed in memory."""

from collections.abc import Sequence

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.ports import (
    FeedItem,
    FeedState,
)
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


class MemoryFeed:
    """The feed as a list, deduplicated by event id."""

    def __init__(self) -> None:
        self.items: dict[str, FeedItem] = {}
        self._checkpoints: dict[int, tuple[int, int]] = {}
        self._states: dict[int, tuple[FeedState, int]] = {}

    async def publish(self, items: Sequence[FeedItem]) -> None:
        for item in items:
            self.items.setdefault(item.event_id, item)

    async def close(self, at: Address, last: FeedItem) -> None:
        subject = subjects.event(at, "")
        for event_id in [
            id_ for id_, item in self.items.items() if item.subject.startswith(subject)
        ]:
            del self.items[event_id]
        await self.publish([last])

    async def checkpoint(self, shard: int) -> tuple[int, int]:
        return self._checkpoints.get(shard, (0, 0))

    async def advance(self, shard: int, position: int, *, revision: int) -> int:
        _, current = await self.checkpoint(shard)
        if current != revision:
            at = Address("feed", f"shard-{shard}")
            raise AppendConflict(at, expected=revision, actual=current)
        self._checkpoints[shard] = (position, current + 1)
        return current + 1

    async def state(self, shard: int) -> tuple[FeedState, int]:
        return self._states.get(shard, (FeedState(), 0))

    async def save_state(self, shard: int, state: FeedState, *, revision: int) -> int:
        _, current = await self.state(shard)
        if current != revision:
            at = Address("feed", f"shard-{shard}")
            raise AppendConflict(at, expected=revision, actual=current)
        self._states[shard] = (state, current + 1)
        return current + 1
