"""Live fragments in memory."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

from fairlead_schema.delta import Delta
from fairlead_schema.subjects import Address


class MemoryDeltas:
    """Live fragments over queues."""

    def __init__(self) -> None:
        self._listeners: defaultdict[Address, set[asyncio.Queue[Delta]]] = defaultdict(set)
        self.sent: list[tuple[Address, Delta]] = []
        self.announce: Callable[[Address, Delta], None] = lambda _at, _delta: None

    async def send(self, at: Address, delta: Delta) -> None:
        self.sent.append((at, delta))
        self.announce(at, delta)
        for listener in self._listeners[at]:
            listener.put_nowait(delta)

    async def listen(self, at: Address) -> AsyncIterator[Delta]:
        received: asyncio.Queue[Delta] = asyncio.Queue()
        self._listeners[at].add(received)
        try:
            while True:
                yield await received.get()
        finally:
            self._listeners[at].discard(received)
