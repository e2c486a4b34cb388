"""Publishes the public feed: one message per event that is not private, in order, once.

It needs no Postgres. A shard's checkpoint lives in the log's own store and is moved by revision, so
a stale publisher stops at its next advance; what it published twice carries the same event ids.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic_core import to_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import START, FeedItem, LogEntry
from fairlead_projector import metrics
from fairlead_projector.shard_reader import following
from fairlead_schema import public_events, subjects
from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    SessionPurged,
)
from fairlead_schema.ids import MessageId
from fairlead_schema.prompt import Delivery
from fairlead_schema.record import Recorded, RecordError, decode
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

READER: Final = "feed"
POLL_S: Final = 1.0
TAKE_OVER_S: Final = 5.0
# Nobody waits for the feed: what comes together goes out together.
LINGER_S: Final = 0.1
ADVANCE_S: Final = 1.0
SAFE_AFTER_S: Final = 60.0
DELIVERIES_MAX: Final = 10_000
_PURGED: Final = f".{SessionPurged.type}"


async def feed(shard: int, eventlog: EventLog, *, well: Callable[[], None]) -> None:
    """Publish one shard until another publisher fences it. Raises AppendConflict then."""
    position, revision = await stand_by(shard, eventlog, well=well)
    # The first advance is the claim: from here on the former publisher is fenced.
    revision = await eventlog.feed.advance(shard, position, revision=revision)
    log.info("feeding", extra={"shard": shard, "position": position})
    deliveries = Deliveries(eventlog)
    progress = Progress(position)
    async with following(
        eventlog, shard, after=position, reader=READER, linger_s=LINGER_S
    ) as batches:
        async for entries in batches:
            well()
            items = await publishable(entries, deliveries)
            if items:
                await _publish(eventlog, items)
                metrics.FED.inc(len(items))
            if entries:
                progress.note(entries[-1].position, now=time.monotonic())
            if progress.due(now=time.monotonic()):
                safe = progress.safe(now=time.monotonic())
                revision = await eventlog.feed.advance(shard, safe, revision=revision)


async def _publish(eventlog: EventLog, items: Sequence[FeedItem]) -> None:
    await eventlog.feed.publish(items)
    for item in items:
        # In order, so nothing of the session is published after its last word.
        if item.subject.endswith(_PURGED):
            _root, _kind, tenant, session_id, *_type = item.subject.split(".")
            await eventlog.feed.close(Address(tenant, session_id), item)


class Progress:
    """How far the checkpoint may go: only over what the server's disk has had time to take.

    The feed's stream is persisted lazily, so a crash may lose its newest messages. They are then
    published again from the checkpoint; the stream's duplicate window is longer than the lag.
    """

    def __init__(self, position: int) -> None:
        self._safe = position
        self._fresh: deque[tuple[float, int]] = deque()
        self._advanced_at = 0.0
        self._told = True

    def note(self, position: int, *, now: float) -> None:
        """Everything up to here is published."""
        self._fresh.append((now, position))
        self._told = False

    def due(self, *, now: float) -> bool:
        """Whether to advance: while there is news, so that nobody takes us for dead."""
        if (self._told and not self._fresh) or now - self._advanced_at < ADVANCE_S:
            return False
        self._advanced_at, self._told = now, True
        return True

    def safe(self, *, now: float) -> int:
        """The last position that is old enough."""
        while self._fresh and now - self._fresh[0][0] > SAFE_AFTER_S:
            self._safe = self._fresh.popleft()[1]
        return self._safe


async def stand_by(shard: int, eventlog: EventLog, *, well: Callable[[], None]) -> tuple[int, int]:
    """Wait until nobody publishes a shard that has news; the answer is its checkpoint."""
    position, revision = await eventlog.feed.checkpoint(shard)
    still_since = time.monotonic()
    while revision != 0 and time.monotonic() - still_since < TAKE_OVER_S:
        await asyncio.sleep(POLL_S)
        well()
        seen, (position, revision) = revision, await eventlog.feed.checkpoint(shard)
        # A living publisher moves the revision until its checkpoint has reached the end.
        if revision != seen or await eventlog.shards.last_position(shard) <= position:
            still_since = time.monotonic()
    return position, revision


async def publishable(entries: Sequence[LogEntry], deliveries: "Deliveries") -> list[FeedItem]:
    """The feed's items of some log entries. An unreadable commit is left out and counted."""
    items: list[FeedItem] = []
    for entry in entries:
        for recorded in _events(entry):
            event = recorded.event
            deliveries.note(entry.at, recorded)
            if event.visibility == "private":
                continue
            delivery: Delivery = "steer"
            if isinstance(event, PromptPromoted):
                delivery = await deliveries.take(entry.at, event.message_id)
            payload = to_json(
                public_events.public_event_json(entry.at.session_id, recorded, delivery=delivery)
            )
            subject = subjects.event(entry.at, event.type)
            items.append(FeedItem(subject, recorded.id, payload))
    return items


class Deliveries:
    """How pending inputs were delivered: a promotion does not say it, its readers want it."""

    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog.log
        self._recent: OrderedDict[tuple[Address, MessageId], Delivery] = OrderedDict()

    def note(self, at: Address, recorded: Recorded) -> None:
        """Remember what an event says of an input's delivery."""
        event = recorded.event
        if isinstance(event, PromptAdmitted | InputEdited):
            self._recent[at, event.message_id] = event.delivery
            if len(self._recent) > DELIVERIES_MAX:
                self._recent.popitem(last=False)
        elif isinstance(event, InputCancelled):
            self._recent.pop((at, event.message_id), None)

    async def take(self, at: Address, message_id: MessageId) -> Delivery:
        """The delivery of an input that is promoted; read from its log if it was forgotten."""
        known = self._recent.pop((at, message_id), None)
        return known or await self._look_up(at, message_id)

    async def _look_up(self, at: Address, message_id: MessageId) -> Delivery:
        found: Delivery = "steer"
        head, more = START, True
        while more:
            try:
                commits, more = await self._log.read(at, after=head)
            except RecordError:
                break  # Nobody reads further; the others of the shard are not to wait for it.
            for recorded in (one for stored in commits for one in stored.commit.events):
                event = recorded.event
                if isinstance(event, PromptAdmitted | InputEdited | PromptPromoted):
                    if event.message_id != message_id:
                        continue
                    if isinstance(event, PromptPromoted):
                        return found
                    found = event.delivery
            head = commits[-1].head if commits else head
        return found


def _events(entry: LogEntry) -> Iterator[Recorded]:
    try:
        yield from decode(entry.payload).events
    except RecordError as error:
        metrics.UNREADABLE.inc()
        extra = {"session_id": entry.at.session_id, "reason": str(error)}
        log.error("commit left out of the feed", extra=extra)  # noqa: TRY400 - the reason says it
