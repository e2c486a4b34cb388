"""The sessions that the feed of a shard holds, each from its first commit that could not be read.

The list is stored before the checkpoint passes such a commit, so no event is left out. It holds a
session back in order: nothing of the session is published before what is held.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import FeedState, LogEntry
from fairlead_projector import metrics
from fairlead_projector.errors import FeedFull
from fairlead_schema.events import SessionPurged
from fairlead_schema.raw_records.raw_commit import RawEvent
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

HELD_MAX: Final = 1_000

PublishEvents: TypeAlias = Callable[[Address, Sequence[RawEvent]], Awaitable[None]]
"""Publishes events of one session, in order."""


class HeldSessions:
    """The held sessions of one shard, and the incarnation of the log that they belong to."""

    def __init__(
        self,
        eventlog: EventLog,
        shard: int,
        held: Mapping[Address, int],
        incarnation: str | None,
        revision: int,
    ) -> None:
        """`revision` is that of the stored list, and `incarnation` the one that it has from now on."""
        self._eventlog = eventlog
        self._shard = shard
        self._held = dict(held)
        self._incarnation = incarnation
        self._stored: FeedState | None = None
        self._revision = revision

    def __len__(self) -> int:
        return len(self._held)

    def read(self, entry: LogEntry) -> Sequence[RawEvent]:
        """The events to publish of an entry: none of a held session, unless they purge it.

        An entry that cannot be read holds its session from there on. Raises FeedFull.
        """
        try:
            events = decode_raw(entry.payload).events
        except RecordError as error:
            self._hold(entry, error)
            return ()
        if entry.at not in self._held:
            return events
        if events[-1].kind is not SessionPurged:
            return ()
        del self._held[entry.at]
        return events[-1:]

    async def save(self) -> None:
        """Store the list if it has changed. Raises AppendConflict if fenced."""
        metrics.FEED_HELD.labels(str(self._shard)).set(len(self._held))
        state = FeedState(self._incarnation, dict(self._held))
        if state != self._stored:
            self._revision = await self._eventlog.feed.save_state(
                self._shard, state, revision=self._revision
            )
            self._stored = state

    async def release(self, publish: PublishEvents, *, up_to: int) -> None:
        """Publish what this release can read of the held sessions, up to a position."""
        for at, first in list(self._held.items()):
            readable_until = await self._release_session(at, first, publish, up_to)
            if readable_until is None:
                del self._held[at]
                extra = {"session_id": at.session_id, "position": first}
                log.info("held session published: the feed goes on with it", extra=extra)
            else:
                self._held[at] = readable_until
            await self.save()

    async def _release_session(
        self, at: Address, first: int, publish: PublishEvents, up_to: int
    ) -> int | None:
        """Publish a session from a position on. The answer is the next position to hold, if any."""
        async for entry in self._eventlog.shards.session_entries(at, after=first - 1):
            if entry.position > up_to:
                break
            try:
                events = decode_raw(entry.payload).events
            except RecordError:
                return entry.position
            await publish(at, events)
        return None

    def _hold(self, entry: LogEntry, error: RecordError) -> None:
        metrics.UNREADABLE.inc()
        if entry.at in self._held:
            return
        if len(self._held) >= HELD_MAX:
            raise FeedFull(self._shard, HELD_MAX)
        self._held[entry.at] = entry.position
        log.error(
            "unreadable commit: the feed holds the session until a release can read it",
            extra={
                "session_id": entry.at.session_id,
                "position": entry.position,
                "reason": str(error),
            },
        )
