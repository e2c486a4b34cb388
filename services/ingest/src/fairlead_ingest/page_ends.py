"""Where pages of history ended, so that the next page of a reader begins without a search."""

from collections import OrderedDict
from typing import Final

from fairlead_eventlog.ports import Head, SessionLog
from fairlead_eventlog.replicas.contiguity import locate_readable
from fairlead_schema.subjects import Address

ENDS_MAX: Final = 4096


class PageEnds:
    """The last whole commit of each page, by the seq that its reader comes back with."""

    def __init__(self) -> None:
        self._heads: OrderedDict[tuple[Address, int], Head] = OrderedDict()

    def note(self, at: Address, seq: int, head: Head) -> None:
        """A page ended behind an event. `head` is that of the commit before whatever comes next."""
        self._heads[at, seq] = head
        self._heads.move_to_end((at, seq))
        if len(self._heads) > ENDS_MAX:
            self._heads.popitem(last=False)

    async def find(self, log: SessionLog, at: Address, seq: int) -> Head:
        """A head at or before an event; the beginning if a search meets what cannot be read."""
        known = self._heads.get((at, seq))
        if known is not None and await _is_stored(log, at, known):
            return known
        return await locate_readable(log, at, seq)

    def forget_all(self) -> None:
        """The log was restored: other commits may have these positions."""
        self._heads.clear()


async def _is_stored(log: SessionLog, at: Address, head: Head) -> bool:
    """Whether the commit of a head is still there. What is erased never comes back to its position."""
    page = await log.read_entries(at, after=head.position - 1, limit=1)
    return bool(page.entries) and page.entries[0].position == head.position
