"""Keeps the lowered history of recent sessions, so that a turn lowers only what is new."""

from collections import OrderedDict
from typing import Final

from fairlead_schema.subjects import Address
from fairlead_session.turn.lowered_history import LoweredHistory

# The length of all kept histories as JSON. A history mostly refers to texts of cached sessions.
UNITS_MAX: Final = 64 * 1024 * 1024


class LoweredHistories:
    """The last lowered history of each session, within a budget. A lost one is built again.

    A short history takes many times its length in memory, so that their number counts too.
    """

    def __init__(self, *, sessions_max: int, units_max: int = UNITS_MAX) -> None:
        self._units_max = units_max
        self._sessions_max = sessions_max
        self._units = 0
        self._histories: OrderedDict[Address, LoweredHistory] = OrderedDict()

    def get(self, at: Address) -> LoweredHistory | None:
        """The history of the session's last request in this process, if it is kept."""
        return self._histories.get(at)

    def put(self, at: Address, history: LoweredHistory) -> None:
        """Keep a history, and drop the least recently used ones beyond the budget."""
        self._drop(at)
        self._histories[at] = history
        self._units += history.units
        while self._units > self._units_max or len(self._histories) > self._sessions_max:
            self._drop(next(iter(self._histories)))

    def _drop(self, at: Address) -> None:
        dropped = self._histories.pop(at, None)
        if dropped is not None:
            self._units -= dropped.units
