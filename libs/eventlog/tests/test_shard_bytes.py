"""A reader of a shard takes a bounded number of bytes at once, and misses nothing."""

import asyncio

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream import pull
from fairlead_eventlog.jetstream.streams import shards
from fairlead_eventlog.jetstream.streams.shards import MESSAGE_BYTES_MAX
from fairlead_eventlog.ports import START
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address, shard
from fairlead_service import ids

COMMITS = 24
COMMIT_BYTES = 900_000


async def test_large_commits_of_a_shard_come_in_batches_of_bounded_bytes(
    eventlog: EventLog,
) -> None:
    """A16: a batch of 500 commits of eight megabytes did not fit into any process."""
    at = Address("default", ids.session_id())
    number, head = shard(at.session_id), START
    after = await eventlog.shards.last_position(number)
    for count in range(COMMITS):
        event = PromptAdmitted(
            message_id=f"msg_{count}", prompt=Prompt(text="x" * COMMIT_BYTES), delivery="queue"
        )
        draft = Draft(ids.event_id(), 1, event)
        head = (await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)).head

    sizes: list[int] = []
    positions: list[int] = []
    async with asyncio.timeout(60):
        async for batch in eventlog.shards.follow(
            number, after=after, reader="bytes", bytes_max=MESSAGE_BYTES_MAX
        ):
            sizes.append(sum(len(entry.payload) for entry in batch))
            positions += [entry.position for entry in batch if entry.at == at]
            if len(positions) == COMMITS:
                break

    assert max(sizes) <= MESSAGE_BYTES_MAX
    assert positions == sorted(set(positions))


async def test_a_reader_does_not_pause_between_full_batches(
    eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server calls the end of a full batch a conflict. A reader paused for half a second then."""
    monkeypatch.setattr(shards, "BATCH", 10)
    monkeypatch.setattr(pull, "CONFLICT_PAUSE_S", 300.0)
    at = Address("default", ids.session_id())
    number, head = shard(at.session_id), START
    after = await eventlog.shards.last_position(number)
    for count in range(COMMITS):
        event = PromptAdmitted(message_id=f"msg_{count}", prompt=Prompt(text="x"), delivery="queue")
        draft = Draft(ids.event_id(), 1, event)
        head = (await eventlog.log.append(at, ids.commit_id(), (draft,), after=head)).head

    found = 0
    async with asyncio.timeout(60):
        async for batch in eventlog.shards.follow(number, after=after, reader="full"):
            found += sum(entry.at == at for entry in batch)
            if found == COMMITS:
                break

    assert found == COMMITS
