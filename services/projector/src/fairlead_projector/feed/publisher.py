"""Publishes the public feed: one message per event that is not private, in order, once.

The feed needs no Postgres. NATS keeps the checkpoint of a shard and moves it by revision, so a stale
publisher stops at its next advance. A message that was published twice has the same event id.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from pydantic_core import to_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import BATCH_BYTES, FeedItem, LogEntry
from fairlead_projector import metrics
from fairlead_projector.feed.checkpoint import TIMINGS, FeedCheckpoint
from fairlead_projector.feed.cloud_events import cloud_event_headers
from fairlead_projector.feed.deliveries import PendingDeliveries
from fairlead_projector.feed.held_sessions import HeldSessions
from fairlead_projector.restore import (
    ReaderMark,
    check_incarnation,
    check_log,
    digest_entry,
    resume_mark,
)
from fairlead_projector.settings import FeedTimings
from fairlead_projector.shard_reader import Companions, ReadPace, follow_shard
from fairlead_schema import public_events, subjects
from fairlead_schema.events import PromptPromoted, SessionPurged
from fairlead_schema.prompt import Delivery
from fairlead_schema.raw_records.raw_commit import RawEvent
from fairlead_schema.subjects import Address

log = logging.getLogger(__name__)

READER: Final = "feed"
_PURGED: Final = f".{SessionPurged.type}"


async def publish_shard(
    shard: int,
    eventlog: EventLog,
    *,
    on_healthy: Callable[[], None],
    timings: FeedTimings = TIMINGS,
    bytes_max: int = BATCH_BYTES,
    companions: Companions | None = None,
) -> None:
    """Publish one shard. Raises AppendConflict when another publisher has taken it over.

    Raises LogRestored when the log is not the one that the checkpoint belongs to.
    """
    position, revision = await wait_for_takeover(
        shard, eventlog, on_healthy=on_healthy, timings=timings
    )
    state, state_revision = await eventlog.feed.state(shard)
    mark = await resume_mark(eventlog, shard, ReaderMark(position, state.incarnation))
    if mark.position < position:
        log.warning(
            "log restored: the feed publishes the shard again",
            extra={"shard": shard, "position": mark.position, "checkpoint": position},
        )
    # The first advance claims the shard: it fences the former publisher.
    revision = await eventlog.feed.advance(shard, mark.position, revision=revision)
    log.info("feed publisher started", extra={"shard": shard, "position": mark.position})
    publisher = _ShardPublisher(eventlog)
    held = HeldSessions(eventlog, shard, state.held, mark.incarnation, state_revision)
    await held.release(publisher.publish, up_to=mark.position)
    await held.save()
    checkpoint = FeedCheckpoint(mark.position, timings)
    async with follow_shard(
        eventlog,
        shard,
        after=mark.position,
        reader=READER,
        pace=ReadPace(linger_s=timings.linger_s, bytes_max=bytes_max, companions=companions),
        verify=lambda: check_log(eventlog, shard, mark),
    ) as reader:
        while True:
            has_entries = await reader.wait()
            on_healthy()
            check_incarnation(eventlog, shard, mark)
            if has_entries:
                entries = reader.take()
                await publisher.publish_entries(entries, held)
                last = entries[-1]
                mark = mark._replace(position=last.position, digest=digest_entry(last))
                checkpoint.note(mark.position, now=time.monotonic())
            else:
                await check_log(eventlog, shard, mark)
            if checkpoint.due(now=time.monotonic(), holds=bool(len(held))):
                safe = checkpoint.safe(now=time.monotonic())
                revision = await eventlog.feed.advance(shard, safe, revision=revision)


class _ShardPublisher:
    """Publishes the events of one shard."""

    def __init__(self, eventlog: EventLog) -> None:
        self._eventlog = eventlog
        self._deliveries = PendingDeliveries(eventlog)

    async def publish_entries(self, entries: Sequence[LogEntry], held: HeldSessions) -> None:
        """Publish a batch. The list of held sessions is stored before any checkpoint passes it."""
        readable = [(entry.at, held.read(entry)) for entry in entries]
        await held.save()
        await self._publish(
            [
                item
                for at, events in readable
                for item in await feed_items(at, events, self._deliveries)
            ]
        )

    async def publish(self, at: Address, events: Sequence[RawEvent]) -> None:
        """Publish events of one session."""
        await self._publish(await feed_items(at, events, self._deliveries))

    async def _publish(self, items: Sequence[FeedItem]) -> None:
        if items:
            await _publish(self._eventlog, items)
            metrics.FED.inc(len(items))


async def _publish(eventlog: EventLog, items: Sequence[FeedItem]) -> None:
    await eventlog.feed.publish(items)
    for item in items:
        # Items are in order: nothing of the session is published after its last word.
        if item.subject.endswith(_PURGED):
            _root, _kind, tenant, session_id, *_type = item.subject.split(".")
            await eventlog.feed.close(Address(tenant, session_id), item)


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
        if revision != last_revision or not await _has_work(eventlog, shard, position):
            unchanged_since = time.monotonic()
    return position, revision


async def _has_work(eventlog: EventLog, shard: int, position: int) -> bool:
    """Whether a living publisher would change the revision of its checkpoint now.

    It does so until the checkpoint is at the end, while it holds sessions, and after a restore.
    """
    if await eventlog.shards.last_position(shard) != position:
        return True
    state, _revision = await eventlog.feed.state(shard)
    current = eventlog.status.current.incarnation
    is_restored = current is not None and state.incarnation not in {None, current.id}
    return bool(state.held) or is_restored


def _is_silent(event: RawEvent) -> bool:
    """Whether an import brought the event that nobody asked to publish."""
    return event.imported is not None and not event.imported.publish


async def feed_items(
    at: Address, events: Sequence[RawEvent], deliveries: PendingDeliveries
) -> list[FeedItem]:
    """The feed items of events of one session."""
    items: list[FeedItem] = []
    for event in events:
        deliveries.note(at, event)
        if event.kind.visibility == "private" or _is_silent(event):
            continue
        delivery: Delivery = "steer"
        if event.kind is PromptPromoted:
            delivery = await deliveries.take(at, event.data["messageID"])
        payload = to_json(
            public_events.raw_event_json(at.session_id, event, by=event.by, delivery=delivery)
        )
        headers = cloud_event_headers(at, event)
        items.append(FeedItem(subjects.event(at, event.kind.type), event.id, payload, headers))
    return items
