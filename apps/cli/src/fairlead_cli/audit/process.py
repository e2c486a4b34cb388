"""The process of the auditor: one reader for each shard, health and metrics over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from starlette.applications import Starlette

from fairlead_cli.audit.auditor import Auditor
from fairlead_cli.audit.metrics import LAG
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SHARDS
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.supervise import Work, cancel_and_wait, supervise

READER: Final = "audit"
WATCH_S: Final = 5.0


def build_auditor(address: NatsAddress, *, whole: bool, sessions_max: int) -> Starlette:
    """The application of an auditor. With `whole` it begins with the first commit of the log."""
    health = Health()

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        async with connect(address, name="audit") as eventlog:
            health.depend("nats", eventlog.complaint)
            follower = LogFollower(eventlog, Auditor(eventlog, sessions_max=sessions_max))
            if not whole:
                await follower.skip_to_end()
            tasks = follower.start()
            try:
                yield
            finally:
                await cancel_and_wait(*tasks)

    return application("audit", work, health)


class LogFollower:
    """Follows every shard, and begins again where it stopped."""

    def __init__(self, eventlog: EventLog, auditor: Auditor) -> None:
        self._eventlog = eventlog
        self._auditor = auditor
        self._positions = dict.fromkeys(range(SHARDS), 0)

    async def skip_to_end(self) -> None:
        """Begin with what comes from now on. Raises LogUnavailable."""
        for shard in self._positions:
            self._positions[shard] = await self._eventlog.shards.last_position(shard)

    def start(self) -> list[asyncio.Task[None]]:
        """The tasks that follow the shards and measure how far they are."""
        work: dict[str, Work] = {
            f"audit of shard {shard}": partial(self.follow, shard) for shard in self._positions
        }
        work["lag of the audit"] = self._measure_lag
        return [
            asyncio.create_task(supervise(name, task), name=name) for name, task in work.items()
        ]

    async def follow(self, shard: int) -> None:
        """Verify the entries of a shard until it cannot be read."""
        after = self._positions[shard]
        async for batch in self._eventlog.shards.follow(shard, after=after, reader=READER):
            for entry in batch:
                await self._auditor.add(entry)
                self._positions[shard] = entry.position

    async def _measure_lag(self) -> None:
        while True:
            ends = [await self._eventlog.shards.last_position(shard) for shard in self._positions]
            behind = zip(ends, self._positions.values(), strict=True)
            LAG.set(sum(max(0, end - position) for end, position in behind))
            await asyncio.sleep(WATCH_S)
