"""How many shards this process may write, so that several projectors share the work."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlead_projector.database import LOCK_SPACE, PRESENCE_LOCK, Connection, cell, query
from fairlead_schema.subjects import SHARDS


@dataclass(slots=True)
class Share:
    """A fair part of the shards. Only a matter of balance: the checkpoint is the fence."""

    limit: int = SHARDS
    held: set[int] = field(default_factory=set)

    def room(self) -> bool:
        """Whether one more shard may be taken."""
        return len(self.held) < self.limit

    def surplus(self, shard: int) -> bool:
        """Whether this shard should be left to another process."""
        return shard in sorted(self.held)[self.limit :]

    @contextmanager
    def holding(self, shard: int) -> Iterator[None]:
        """Count a shard as ours while the block runs."""
        self.held.add(shard)
        try:
            yield
        finally:
            self.held.discard(shard)

    def divide(self, projectors: int) -> None:
        """Split the shards among so many processes; every shard finds one."""
        self.limit = math.ceil(SHARDS / max(1, projectors))


async def announce(connection: Connection) -> None:
    """Count as a projector for as long as this connection lives."""
    await connection.execute(query("announce"), _PRESENCE)


async def count(connection: Connection) -> int:
    """How many projectors are present."""
    cursor = await connection.execute(query("count_present"), _PRESENCE)
    return int(await cell(cursor.fetchone()))


_PRESENCE = {"space": LOCK_SPACE, "key": PRESENCE_LOCK}
