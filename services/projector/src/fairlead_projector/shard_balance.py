"""Divides the shards among the running projectors."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlead_projector.database import LOCK_SPACE, PRESENCE_LOCK, Connection, query, single_cell
from fairlead_schema.subjects import SHARDS


@dataclass(slots=True)
class ShardShare:
    """The shards of this process, and how many it may have.

    The share only balances the work. The checkpoint fences writers.
    """

    limit: int = SHARDS
    shards: set[int] = field(default_factory=set)

    def has_room(self) -> bool:
        """Whether this process may take one more shard."""
        return len(self.shards) < self.limit

    def is_surplus(self, shard: int) -> bool:
        """Whether this process should leave the shard to another one."""
        return shard in sorted(self.shards)[self.limit :]

    @contextmanager
    def hold(self, shard: int) -> Iterator[None]:
        """Count a shard as ours during the block."""
        self.shards.add(shard)
        try:
            yield
        finally:
            self.shards.discard(shard)

    def divide(self, projectors: int) -> None:
        """Divide all shards among this many projectors."""
        self.limit = math.ceil(SHARDS / max(1, projectors))


async def announce_projector(connection: Connection) -> None:
    """Count as a running projector while this connection lives."""
    await connection.execute(query("announce"), _PRESENCE)


async def count_projectors(connection: Connection) -> int:
    """The number of running projectors."""
    cursor = await connection.execute(query("count_present"), _PRESENCE)
    return int(await single_cell(cursor))


_PRESENCE = {"space": LOCK_SPACE, "key": PRESENCE_LOCK}
