"""The public feed: its items, their order, and its publisher."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.memory.feed import MemoryFeed
from fairlead_eventlog.ports import FeedItem, LogEntry
from fairlead_projector.feed.checkpoint import FeedCheckpoint
from fairlead_projector.feed.deliveries import PendingDeliveries
from fairlead_projector.feed.publisher import feed_items, publish_shard
from fairlead_projector.settings import FeedTimings
from fairlead_schema.events import (
    ExecutionClaimed,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.raw_records.raw_decoder import decode_raw
from fairlead_schema.record import Commit, ImportMark, decode, encode
from fairlead_schema.subjects import Address, shard

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
SHARD = shard(AT.session_id)
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
PROMPT = Prompt(text="hello")
QUEUED = PromptAdmitted(message_id="msg_1", prompt=PROMPT, delivery="queue")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=PROMPT, created=2)


async def items_of(log_builder: "LogBuilder", *entries: LogEntry) -> list[FeedItem]:
    deliveries = PendingDeliveries(log_builder.eventlog)
    events = [event for entry in entries for event in decode_raw(entry.payload).events]
    return await feed_items(AT, events, deliveries)


async def test_private_events_stay_inside(log_builder: "LogBuilder") -> None:
    items = await items_of(log_builder, log_builder.commit(AT, CREATED, CLAIMED, SessionArchived()))

    assert [item.subject for item in items] == [
        "fairlead.event.default.ses_1.session.created",
        "fairlead.event.default.ses_1.session.archived",
    ]
    assert [json.loads(item.payload)["durable"]["seq"] for item in items] == [1, 3]


async def test_an_item_has_the_attributes_of_cloudevents_as_headers(
    log_builder: "LogBuilder",
) -> None:
    """The binary mode: generic consumers route by headers, and the body stays the envelope."""
    (item,) = await items_of(log_builder, log_builder.commit(AT, CREATED))
    envelope = json.loads(item.payload)
    moment = datetime.fromisoformat(item.headers["ce-time"])
    assert item.headers == {
        "ce-specversion": "1.0",
        "ce-id": envelope["id"],
        "ce-source": "/fairlead/default",
        "ce-type": envelope["type"],
        "ce-subject": "ses_1",
        "ce-time": item.headers["ce-time"],
        "content-type": "application/json",
    }
    assert item.headers["ce-time"].endswith("Z")
    assert round(moment.timestamp() * 1000) == envelope["data"]["timestamp"]


@pytest.mark.parametrize(
    ("mark", "published"), [(ImportMark(2), []), (ImportMark(2, publish=True), [1, 2])]
)
async def test_an_import_is_silent_unless_publication_is_asked_for(
    log_builder: "LogBuilder", mark: ImportMark, published: list[int]
) -> None:
    """H-14, H-15: only events that are new are in the log, each with its seq."""
    recorded = decode(log_builder.payload(AT, CREATED, SessionArchived())).events
    marked = tuple(event._replace(imported=mark) for event in recorded)

    items = await items_of(log_builder, log_builder.raw(AT, encode(Commit("cmt_i", marked))))

    seqs = [json.loads(item.payload)["durable"]["seq"] for item in items]
    assert seqs == published


async def test_a_promotion_shows_the_delivery_of_its_input(log_builder: "LogBuilder") -> None:
    items = await items_of(
        log_builder, log_builder.commit(AT, CREATED, QUEUED), log_builder.commit(AT, PROMOTED)
    )

    assert json.loads(items[-1].payload)["data"]["delivery"] == "queue"


async def test_a_forgotten_delivery_is_read_from_the_log(log_builder: "LogBuilder") -> None:
    edit = InputEdited(message_id="msg_1", prompt=PROMPT, delivery="queue")
    admission = QUEUED.model_copy(update={"delivery": "steer"})
    await log_builder.append(AT, CREATED, admission, edit)
    await log_builder.append(AT, PROMOTED)

    items = await items_of(log_builder, log_builder.log.entries[SHARD][-1])

    assert json.loads(items[0].payload)["data"]["delivery"] == "queue"


def test_the_checkpoint_passes_only_what_the_disk_had_time_to_take() -> None:
    progress = FeedCheckpoint(3)
    progress.note(5, now=100.0)
    progress.note(9, now=130.0)

    assert progress.safe(now=159.0) == 3
    assert progress.safe(now=161.0) == 5
    assert progress.safe(now=191.0) == 9


def test_a_publisher_shows_that_it_lives_until_its_checkpoint_is_at_the_end() -> None:
    progress = FeedCheckpoint(0)
    progress.note(5, now=100.0)

    assert progress.due(now=101.0)
    assert not progress.due(now=101.5)
    assert progress.due(now=103.0)
    progress.safe(now=200.0)
    assert not progress.due(now=201.0)


async def test_the_feed_follows_the_log_and_remembers_its_place(log_builder: "LogBuilder") -> None:
    log_builder.commit(AT, CREATED, CLAIMED)
    async with publish_feed(log_builder):
        await log_builder.append(AT, SessionArchived())
        await wait_until(lambda: len(published_ids(log_builder)) == 2)

    position, _revision = await log_builder.eventlog.feed.checkpoint(SHARD)
    assert position == 2
    assert published_ids(log_builder) == ["evt_1_1", "evt_2_1"]


async def test_a_second_publisher_waits_while_the_first_moves_and_takes_over_when_it_is_gone(
    log_builder: "LogBuilder",
) -> None:
    log_builder.commit(AT, CREATED)
    async with publish_feed(log_builder):
        await wait_until(lambda: len(published_ids(log_builder)) == 1)
    _position, revision = await log_builder.eventlog.feed.checkpoint(SHARD)
    async with publish_feed(log_builder):
        await asyncio.sleep(0.3)
        assert await log_builder.eventlog.feed.checkpoint(SHARD) == (1, revision)

        await log_builder.append(AT, SessionArchived())
        await wait_until(lambda: len(published_ids(log_builder)) == 2)


async def test_a_fenced_publisher_stops(log_builder: "LogBuilder") -> None:
    log_builder.commit(AT, CREATED)
    task = asyncio.create_task(publish_shard(SHARD, log_builder.eventlog, on_healthy=lambda: None))
    await wait_until(lambda: len(published_ids(log_builder)) == 1)
    await asyncio.sleep(0)
    position, revision = await log_builder.eventlog.feed.checkpoint(SHARD)
    await log_builder.eventlog.feed.advance(SHARD, position, revision=revision)

    await log_builder.append(AT, SessionArchived())

    with pytest.raises(AppendConflict):
        await asyncio.wait_for(task, 5)


@asynccontextmanager
async def publish_feed(log_builder: "LogBuilder") -> AsyncIterator[None]:
    """Publish one shard during the block. Its checkpoint advances at once."""
    timings = FeedTimings(safe_after_s=-1.0, advance_s=-1.0, poll_s=0.01, take_over_s=0.1)
    task = asyncio.create_task(
        publish_shard(SHARD, log_builder.eventlog, on_healthy=lambda: None, timings=timings)
    )
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def published_ids(log_builder: "LogBuilder") -> list[str]:
    assert isinstance(log_builder.eventlog.feed, MemoryFeed)
    return list(log_builder.eventlog.feed.items)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)
