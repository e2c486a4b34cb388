"""Where the sessions of a tenant work, for the envelopes of a live stream (H-11).

The log says it when a session begins or moves. For a session that began before this reader the read
model says it, if it is not behind and answers soon: a live stream waits for nobody.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from fairlead_gateway.reads.read_model import ReadModel, ReadsUnavailable, UnreadableRow
from fairlead_schema.events import SessionCreated, SessionMoved, SessionPurged
from fairlead_schema.location import LocationRef
from fairlead_schema.raw_records.raw_commit import RawEvent
from fairlead_schema.subjects import Address

SESSIONS_MAX: Final = 4096
LOOK_UP_S: Final = 0.25
"""How long one look-up may hold up the stream."""
PAUSE_S: Final = 5.0
"""How long nothing is looked up after the read model did not answer."""
_NAMES_LOCATION: Final = frozenset({SessionCreated, SessionMoved})


class SessionLocations:
    """The locations of the sessions that one hub has seen."""

    def __init__(self, read_model: ReadModel, clock: Callable[[], float]) -> None:
        self._read_model = read_model
        self._clock = clock
        self._known: OrderedDict[Address, LocationRef] = OrderedDict()
        self._silent_until = 0.0

    def get(self, at: Address) -> LocationRef | None:
        """The location of a session, if this reader knows it."""
        return self._known.get(at)

    def follow(self, at: Address, event: RawEvent) -> LocationRef | None:
        """The location of a session after an event."""
        if event.kind in _NAMES_LOCATION:
            self._keep(at, LocationRef.model_validate(event.data["location"]))
        elif event.kind is SessionPurged:
            self._known.pop(at, None)
        return self._known.get(at)

    async def look_up(self, at: Address, *, before: int) -> None:
        """Learn the location of a session as it was before the event `before`."""
        if at in self._known or before == 1 or self._clock() < self._silent_until:
            return
        try:
            async with asyncio.timeout(LOOK_UP_S):
                progress = await self._read_model.progress(at)
                if progress is None or progress.seq < before - 1:
                    return
                found = await self._read_model.session(at)
        except (ReadsUnavailable, UnreadableRow, TimeoutError):
            self._silent_until = self._clock() + PAUSE_S
            return
        if found is not None:
            self._keep(at, found.location)

    def _keep(self, at: Address, location: LocationRef) -> None:
        self._known[at] = location
        self._known.move_to_end(at)
        if len(self._known) > SESSIONS_MAX:
            self._known.popitem(last=False)


def with_location(event: dict[str, Any], location: LocationRef | None) -> dict[str, Any]:
    """The envelope of an event, with the location where it happened if it is known."""
    return event if location is None else {**event, "location": location.wire()}
