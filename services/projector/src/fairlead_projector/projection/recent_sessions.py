"""The sessions that a projector changed last, bounded by their number and by their bytes. No I/O."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.subjects import Address

SESSIONS_MAX: Final = 16_000
BYTES_MAX: Final = 128 * 1024 * 1024
# A session without messages: its row, its execution, its pending inputs.
SESSION_BYTES: Final = 2_048
# An id in a set.
ID_BYTES: Final = 128


class CacheLimits(NamedTuple):
    """How much of the sessions that were changed last stays in memory."""

    sessions_max: int = SESSIONS_MAX
    bytes_max: int = BYTES_MAX


class RecentSessions:
    """A cache of sessions. The one that was changed longest ago goes first."""

    def __init__(self, limits: CacheLimits) -> None:
        self._sessions_max, self._bytes_max = limits
        self._sessions: OrderedDict[Address, tuple[ProjectedSession, int]] = OrderedDict()
        self.bytes = 0

    def find(self, addresses: Iterable[Address]) -> dict[Address, ProjectedSession]:
        """The sessions among the addresses that are here."""
        return {at: self._sessions[at][0] for at in addresses if at in self._sessions}

    def put(self, at: Address, session: ProjectedSession) -> None:
        """Keep a session as the newest. One that is larger than the whole cache is not kept."""
        self.drop(at)
        ids = 0 if session.ids is None else sum(map(len, session.ids))
        size = SESSION_BYTES + session.message_bytes + ID_BYTES * ids
        self._sessions[at] = (session, size)
        self.bytes += size
        while len(self._sessions) > self._sessions_max or self.bytes > self._bytes_max:
            self.drop(next(iter(self._sessions)))

    def drop(self, at: Address) -> None:
        """Forget a session, if it is here."""
        self.bytes -= self._sessions.pop(at, (None, 0))[1]

    def drop_all(self, is_wanted: Callable[[Address], bool]) -> None:
        """Forget the sessions that a condition names."""
        for at in [at for at in self._sessions if is_wanted(at)]:
            self.drop(at)

    def clear(self) -> None:
        """Forget every session."""
        self._sessions.clear()
        self.bytes = 0
