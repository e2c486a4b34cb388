"""Sessions that this process has just created: a list waits a little until the read models have them."""

import time
from collections import OrderedDict
from typing import Final

from fairlead_gateway.reads.projection_wait import wait_until_projected
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address

KEPT_S: Final = 10.0
SESSIONS_MAX: Final = 1_000


class FreshSessions:
    """Remembers created sessions until they are projected, for some seconds at most."""

    def __init__(self) -> None:
        self._noted_at: OrderedDict[Address, float] = OrderedDict()

    def note(self, at: Address) -> None:
        """A caller of this process has just created the session."""
        self._noted_at[at] = time.monotonic()
        self._noted_at.move_to_end(at)
        while len(self._noted_at) > SESSIONS_MAX:
            self._noted_at.popitem(last=False)

    async def is_stale(self, tenant: TenantId, read_model: ReadModel, *, timeout_s: float) -> bool:
        """Wait until the read models have the tenant's new sessions. True: they lack one."""
        self._forget_old()
        deadline, stale = time.monotonic() + timeout_s, False
        for at in [at for at in self._noted_at if at.tenant == tenant]:
            left_s = max(0.0, deadline - time.monotonic())
            if await wait_until_projected(read_model, at, 1, timeout_s=left_s):
                self._noted_at.pop(at, None)
            else:
                stale = True
        return stale

    def _forget_old(self) -> None:
        now = time.monotonic()
        while self._noted_at and now - next(iter(self._noted_at.values())) > KEPT_S:
            self._noted_at.popitem(last=False)
