"""Publishes the public feed: one message per event that is not private, in order, once.

The feed needs no Postgres. NATS keeps the checkpoint of a shard and moves it by revision, so a stale
publisher stops at its next advance. A message that was published twice has the same event id.
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
from fairlead_projector.settings import FeedTimings
from fairlead_projector.shard_reader import follow_shard
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
TIMINGS: Final = FeedTimings()
DELIVERIES_MAX: Final = 10_000
_PURGED: Final = f".{SessionPurged.type}"


async def publish_shard(
    shard: int,
    eventlog: EventLog,
    *,
    on_healthy: Callable[[], None],
    timings: FeedTimings = TIMINGS,
) -> None:
    """Publish one shard. Raises AppendConflict when another publisher has taken it over."""
    position, revision = await wait_for_takeover(
        shard, eventlog, on_healthy=on_healthy, timings=timings
    )
    # The first advance claims the shard: it fences the former publisher.
    revision = await eventlog.feed.advance(shard, position, revision=revision)
    log.info("feed publisher started", extra={"shard": shard, "position": position})
    deliveries = PendingDeliveries(eventlog)
    checkpoint = FeedCheckpoint(position, timings)
    async with follow_shard(
        eventlog, shard, after=position, reader=READER, linger_s=timings.linger_s
    ) as batches:
        async for entries in batches:
            on_healthy()
            items = await feed_items(entries, deliveries)
            if items:
                await _publish(eventlog, items)
                metrics.FED.inc(len(items))
            if entries:
                checkpoint.note(entries[-1].position, now=time.monotonic())
            if checkpoint.due(now=time.monotonic()):
                safe = checkpoint.safe(now=time.monotonic())
                revision = await eventlog.feed.advance(shard, safe, revision=revision)


async def _publish(eventlog: EventLog, items: Sequence[FeedItem]) -> None:
    await eventlog.feed.publish(items)
    for item in items:
        # Items are in order: nothing of the session is published after its last word.
        if item.subject.endswith(_PURGED):
            _root, _kind, tenant, session_id, *_type = item.subject.split(".")
            await eventlog.feed.close(Address(tenant, session_id), item)


class FeedCheckpoint:
    """How far the checkpoint may move: only over messages that the server has had time to persist.

    The server persists the feed lazily, so a crash may lose the newest messages. The next publisher
    publishes them again from the checkpoint. The duplicate window of the stream is longer than the lag.
    """

    def __init__(self, position: int, timings: FeedTimings = TIMINGS) -> None:
        self._timings = timings
        self._safe = position
        self._fresh: deque[tuple[float, int]] = deque()
        self._advanced_at = 0.0
        self._advanced = True

    def note(self, position: int, *, now: float) -> None:
        """Everything up to this position is published."""
        self._fresh.append((now, position))
        self._advanced = False

    def due(self, *, now: float) -> bool:
        """Whether to advance now. A publisher with new messages advances, so that others see it alive."""
        if (
            self._advanced and not self._fresh
        ) or now - self._advanced_at < self._timings.advance_s:
            return False
        self._advanced_at, self._advanced = now, True
        return True

    def safe(self, *, now: float) -> int:
        """The last position that the server has surely persisted."""
        while self._fresh and now - self._fresh[0][0] > self._timings.safe_after_s:
            self._safe = self._fresh.popleft()[1]
        return self._safe


async def wait_for_takeover(
    shard: int, eventlog: EventLog, *, on_healthy: Callable[[], None], timings: FeedTimings
) -> tuple[int, int]:
    """Wait until no publisher advances a shard that has new events. Returns its checkpoint."""
    position, revision = await eventlog.feed.checkpoint(shard)
    unchanged_since = time.monotonic()
    while revision != 0 and time.monotonic() - unchanged_since < timings.take_over_s:
        await asyncio.sleep(timings.poll_s)
        on_healthy()
        last_revision, (position, revision) = revision, await eventlog.feed.checkpoint(shard)
        # A living publisher changes the revision until its checkpoint has reached the end.
        if revision != last_revision or await eventlog.shards.last_position(shard) <= position:
            unchanged_since = time.monotonic()
    return position, revision


async def feed_items(
    entries: Sequence[LogEntry], deliveries: "PendingDeliveries"
) -> list[FeedItem]:
    """The feed items of log entries. Leaves out and counts an unreadable commit."""
    items: list[FeedItem] = []
    for entry in entries:
        for recorded in _decode_events(entry):
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


class PendingDeliveries:
    """The deliveries of pending inputs. The event of a promotion has none, but its feed item shows it."""

    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog.log
        self._recent: OrderedDict[tuple[Address, MessageId], Delivery] = OrderedDict()

    def note(self, at: Address, recorded: Recorded) -> None:
        """Remember the delivery of an admitted or edited input."""
        event = recorded.event
        if isinstance(event, PromptAdmitted | InputEdited):
            self._recent[at, event.message_id] = event.delivery
            if len(self._recent) > DELIVERIES_MAX:
                self._recent.popitem(last=False)
        elif isinstance(event, InputCancelled):
            self._recent.pop((at, event.message_id), None)

    async def take(self, at: Address, message_id: MessageId) -> Delivery:
        """The delivery of a promoted input. It is read from the log if it is not remembered."""
        delivery = self._recent.pop((at, message_id), None)
        return delivery or await self._look_up(at, message_id)

    async def _look_up(self, at: Address, message_id: MessageId) -> Delivery:
        delivery: Delivery = "steer"
        head, more = START, True
        while more:
            try:
                commits, more = await self._log.read(at, after=head)
            except RecordError:
                break  # An unreadable log must not stop the other sessions of the shard.
            for recorded in (event for stored in commits for event in stored.commit.events):
                event = recorded.event
                if isinstance(event, PromptAdmitted | InputEdited | PromptPromoted):
                    if event.message_id != message_id:
                        continue
                    if isinstance(event, PromptPromoted):
                        return delivery
                    delivery = event.delivery
            head = commits[-1].head if commits else head
        return delivery


def _decode_events(entry: LogEntry) -> Iterator[Recorded]:
    try:
        yield from decode(entry.payload).events
    except RecordError as error:
        metrics.UNREADABLE.inc()
        extra = {"session_id": entry.at.session_id, "reason": str(error)}
        log.error("unreadable commit: the feed leaves it out", extra=extra)  # noqa: TRY400 - the reason is enough
