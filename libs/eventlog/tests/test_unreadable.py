"""A commit that cannot be read stops its readers there: what came before it can still be read."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, cast

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.registers.snapshots import JetStreamSnapshots
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema import subjects
from fairlead_schema.events import SessionPurged
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.record import (
    Commit,
    Draft,
    RecordError,
    UnknownEvent,
    decode,
    encode,
    record,
)
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_testing.events import drafts
from fairlead_testing.nats import Server

Plant: TypeAlias = Callable[[Address, bytes], Awaitable[None]]

STRANGE = (
    b'{"id":"cmt_x","events":[{"id":"evt_x","seq":3,"type":"from.the.future","version":9,'
    b'"time":1,"data":{}}]}'
)


@pytest.fixture
def plant(eventlog: EventLog, address: NatsAddress | None) -> Plant:
    """Stores bytes where a commit is expected, as a newer or a broken writer would."""

    async def append_raw(at: Address, payload: bytes) -> None:
        if isinstance(eventlog.log, MemoryLog):
            await eventlog.log.append_raw(at, payload)
            return
        assert address is not None
        async with open_link(address, name="plant") as link:
            await link.store(subjects.log(at), payload)

    return append_raw


async def write_commits(eventlog: EventLog, at: Address, commits: int) -> Head:
    head = START
    for _ in range(commits):
        head = (await eventlog.log.append(at, ids.commit_id(), drafts(), after=head)).head
    return head


@pytest.mark.parametrize("strange", [STRANGE, b"\xff not json", b""])
async def test_what_came_before_it_can_be_read(
    eventlog: EventLog, at: Address, plant: Plant, strange: bytes
) -> None:
    """H-19: never skipped, and it hides nothing but what follows."""
    head = await write_commits(eventlog, at, 2)
    await plant(at, strange)

    reach = await eventlog.log.last_commit_position(at)
    while (page := await eventlog.log.read(at, after=START, reach=reach)).commits[-1].head != head:
        await asyncio.sleep(0.01)  # The replica lags.

    assert [stored.head.seq for stored in page.commits] == [1, 2]
    assert page.more
    with pytest.raises(RecordError):
        await eventlog.log.read(at, after=head, reach=reach)
    with pytest.raises(RecordError):
        await eventlog.log.head(at)


@pytest.mark.parametrize("strange", [STRANGE, b"\xff not json", b""])
async def test_its_bytes_can_be_read_in_pages_like_all_others(
    eventlog: EventLog, at: Address, plant: Plant, strange: bytes
) -> None:
    """A reader of entries judges each of them itself."""
    await write_commits(eventlog, at, 2)
    await plant(at, strange)
    await plant(at, b"more")
    reach = await eventlog.log.last_commit_position(at)

    payloads: list[bytes] = []
    position, more = 0, True
    while more:
        page = await eventlog.log.read_entries(at, after=position, limit=2, reach=reach)
        assert len(page.entries) <= 2
        payloads += [entry.payload for entry in page.entries]
        position, more = page.entries[-1].position, page.more

    assert [decode(payload).events[0].seq for payload in payloads[:2]] == [1, 2]
    assert payloads[2:] == [strange, b"more"]
    assert position == reach
    assert await eventlog.log.read_entries(at, after=reach, reach=reach) == ((), False)


async def test_a_tail_tells_what_came_before_it_and_then_why_it_ends(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    await write_commits(eventlog, at, 2)
    seqs: list[int] = []

    async def follow() -> None:
        tail = cast("Any", eventlog.log.tail(at, after=0))
        async with aclosing(tail):
            async for stored in tail:
                assert isinstance(stored, StoredCommit)
                seqs.append(stored.head.seq)

    following = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        while len(seqs) < 2:
            await asyncio.sleep(0.01)
        await plant(at, STRANGE)
        with pytest.raises(UnknownEvent):
            await following


async def test_another_session_of_the_shard_is_read_as_ever(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    shard = subjects.shard(at.session_id)
    minted = (Address("default", ids.session_id()) for _ in range(1000))
    other = next(address for address in minted if subjects.shard(address.session_id) == shard)
    await plant(at, STRANGE)

    await write_commits(eventlog, other, 2)

    assert (await eventlog.log.head(other)).seq == 2


async def test_a_sequence_with_a_hole_cannot_be_folded(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """H-02: the error is that of an unreadable commit, not of a defect."""
    head = await write_commits(eventlog, at, 2)
    later = record(drafts(), after=head.seq + 1)
    await plant(at, encode(Commit(ids.commit_id(), later)))
    folded = SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=1)

    with pytest.raises(RecordError, match="4 after 2"):
        await folded.load(at)


@pytest.mark.parametrize(
    "stored", [b"", b"nonsense\nstate", b"[1]\nstate", b'[1, "2"]\nstate', b"7"]
)
@pytest.mark.integration
async def test_a_snapshot_that_cannot_be_read_is_none(
    server: Server, at: Address, stored: bytes
) -> None:
    """D-08: it is a cache; whatever stands there, the log has the session."""
    async with open_link(server.address, name="snapshots") as link:
        snapshots = JetStreamSnapshots(link)
        await link.store(f"$KV.fairlead-snapshot.{at.tenant}.{at.session_id}", stored)

        assert await snapshots.load(at) is None

        await snapshots.store(at, Snapshot(Head(1, 2), b"state"))
        assert await snapshots.load(at) == Snapshot(Head(1, 2), b"state")


@pytest.mark.parametrize(
    ("strange", "seq"), [(STRANGE, 3), (b"\xff not json", 0), (b"", 0), (b'{"events":[]}', 0)]
)
async def test_where_a_log_ends_is_known_although_its_end_cannot_be_read(
    eventlog: EventLog, at: Address, plant: Plant, strange: bytes, seq: int
) -> None:
    """D7: whoever purges it writes behind that place."""
    assert await eventlog.log.end(at) == START
    head = await write_commits(eventlog, at, 2)
    assert await eventlog.log.end(at) == head
    await plant(at, strange)

    end = await eventlog.log.end(at)
    draft = Draft(ids.event_id(), ids.now_ms(), SessionPurged())
    purged = await eventlog.log.append(at, ids.commit_id(), (draft,), after=end)

    assert (end.position > head.position, end.seq) == (True, seq)
    assert purged.head.seq == seq + 1
    assert await eventlog.log.end(at) == START


async def test_the_readable_beginning_of_a_session_comes_with_the_reason_of_its_end(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """D7: an unreadable commit hides nothing that came before it."""
    head = await write_commits(eventlog, at, 1)
    cache = SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=1)
    assert (await cache.load_readable(at)).error is None
    await plant(at, STRANGE.replace(b'"seq":3', b'"seq":2'))

    readable = await cache.load_readable(at)

    assert readable.versioned.head == head
    assert isinstance(readable.error, UnknownEvent)
