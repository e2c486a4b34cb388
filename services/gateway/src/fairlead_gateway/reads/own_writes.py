"""What each caller wrote through this gateway a moment ago, so that its lists can wait for it (D3)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Final, NamedTuple

from fairlead_gateway.reads.projection_wait import wait_until_forgotten, wait_until_projected
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.subjects import Address

KEEP_S: Final = 30.0
WRITES_MAX: Final = 64
PRINCIPALS_MAX: Final = 10_000


class OwnWrite(NamedTuple):
    """The newest event that a caller wrote to a session; None: it purged the session."""

    seq: int | None
    written_at: float


class OwnWrites:
    """The newest writes of each principal. A write that was seen in the read models is forgotten."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._writes: OrderedDict[PrincipalName, OrderedDict[Address, OwnWrite]] = OrderedDict()

    def note(self, principal: PrincipalName, at: Address, seq: int | None) -> None:
        """Remember a write. The oldest ones go if there are too many."""
        writes = self._writes.setdefault(principal, OrderedDict())
        self._writes.move_to_end(principal)
        writes[at] = OwnWrite(seq, self._clock())
        writes.move_to_end(at)
        if len(writes) > WRITES_MAX:
            writes.popitem(last=False)
        if len(self._writes) > PRINCIPALS_MAX:
            self._writes.popitem(last=False)

    async def wait_until_visible(
        self, principal: PrincipalName, read_model: ReadModel, *, timeout_s: float
    ) -> bool:
        """Wait until the read models show what a caller wrote. False: they did not in time."""
        clock = asyncio.get_running_loop().time
        deadline, all_visible = clock() + timeout_s, True
        for at, write in self._recent(principal):
            left_s = max(0.0, deadline - clock())
            if write.seq is None:
                visible = await wait_until_forgotten(read_model, at, timeout_s=left_s)
            else:
                visible = await wait_until_projected(read_model, at, write.seq, timeout_s=left_s)
            if visible:
                self._forget(principal, at, write)
            all_visible = all_visible and visible
        return all_visible

    def _recent(self, principal: PrincipalName) -> list[tuple[Address, OwnWrite]]:
        oldest = self._clock() - KEEP_S
        writes = self._writes.get(principal, OrderedDict())
        return [(at, write) for at, write in writes.items() if write.written_at >= oldest]

    def _forget(self, principal: PrincipalName, at: Address, write: OwnWrite) -> None:
        """Forget a write, unless a newer one has taken its place."""
        writes = self._writes.get(principal)
        if writes is not None and writes.get(at) == write:
            del writes[at]
            if not writes:
                del self._writes[principal]
