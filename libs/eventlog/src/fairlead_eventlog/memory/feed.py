"""The public feed in memory, and its consumers."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from fairlead_eventlog.errors import AppendConflict, ConsumerMissing
from fairlead_eventlog.feed.consumer_ports import FeedFilter, FeedMessage
from fairlead_eventlog.memory.work_queues import MemoryQueue
from fairlead_eventlog.ports import FeedItem, FeedState, Job
from fairlead_eventlog.slots import Slots
from fairlead_eventlog.streams import EVENTS
from fairlead_schema import subjects
from fairlead_schema.subjects import ROOT, Address


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


class _Place:
    """How far one consumer has read the feed, and what it has not acknowledged."""

    def __init__(self, after: int) -> None:
        self.queue = MemoryQueue()
        self.read = after


class MemoryFeedConsumers:
    """Consumers of the feed in memory. The sequence of an event is its place in the feed."""

    def __init__(self, feed: MemoryFeed) -> None:
        self._feed = feed
        self.filters: dict[str, FeedFilter] = {}
        self._places: dict[str, _Place] = {}

    async def open(self, wanted: FeedFilter) -> None:
        self.filters[wanted.name] = wanted
        self._places.setdefault(wanted.name, _Place(wanted.after))

    async def remove(self, name: str) -> None:
        self.filters.pop(name, None)
        self._places.pop(name, None)

    async def names(self) -> frozenset[str]:
        return frozenset(self.filters)

    async def take(self, name: str, slots: Slots) -> AsyncIterator[Job]:
        if name not in self.filters:
            raise ConsumerMissing(EVENTS.name, name)
        feeding = asyncio.create_task(self._follow(name))
        try:
            async for job in self._places[name].queue.take(slots):
                yield job
        finally:
            feeding.cancel()

    async def last_sequence(self) -> int:
        return len(self._feed.items)

    async def message_at(self, sequence: int) -> FeedMessage | None:
        items = list(self._feed.items.values())
        item = items[sequence - 1] if 0 < sequence <= len(items) else None
        return None if item is None else FeedMessage(item.subject, item.payload)

    async def _follow(self, name: str) -> None:
        while name in self.filters:
            wanted, place = self.filters[name], self._places[name]
            for item in list(self._feed.items.values())[place.read :]:
                place.read += 1
                if _fits(item, wanted):
                    place.queue.add(item.subject, item.payload)
            await asyncio.sleep(0.001)


def _fits(item: FeedItem, wanted: FeedFilter) -> bool:
    root, _kind, tenant, _session, type_ = item.subject.split(".", 4)
    return root == ROOT and tenant == wanted.tenant and type_ in wanted.types
