"""Live fragments in memory, and questions for the text so far."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

from fairlead_eventlog.errors import NoResponders
from fairlead_eventlog.replicas.open_texts import FindOpenTexts
from fairlead_schema import subjects
from fairlead_schema.delta import Delta, OpenText
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


class MemoryOpenTexts:
    """The instances that answer."""

    def __init__(self) -> None:
        self._instances: dict[str, FindOpenTexts] = {}

    async def start_answering(self, instance: str, find: FindOpenTexts) -> None:
        self._instances[instance] = find

    async def ask(self, instance: str, at: Address, *, timeout_s: float) -> tuple[OpenText, ...]:
        assert timeout_s > 0
        if instance not in self._instances:
            raise NoResponders(subjects.open_texts(instance))
        return self._instances[instance](at)
