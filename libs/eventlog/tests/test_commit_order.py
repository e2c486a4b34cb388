"""What every reader does with a commit that does not follow: a repeat, other content, a gap (D7)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, StoredCommit
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_schema import subjects
from fairlead_schema.events import (
    ExecutionClaimed,
    SessionCreated,
    SessionEvent,
    SyntheticAdded,
)
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.location import LocationRef
from fairlead_schema.record import (
    Commit,
    DivergentCommit,
    Draft,
    ForeignEventId,
    MalformedCommit,
    Recorded,
    SequenceGap,
    encode,
)
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_session.fold.snapshot import SESSION_FOLD
from fairlead_session.state.session import Session

Plant = Callable[[Commit], Awaitable[None]]

CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/work"))


@pytest.fixture
def plant(eventlog: EventLog, at: Address, address: NatsAddress | None) -> Plant:
    """Stores a commit behind the others without compare-and-set, as a forger would."""

    async def append_raw(commit: Commit) -> None:
        if isinstance(eventlog.log, MemoryLog):
            await eventlog.log.append_raw(at, encode(commit))
            return
        assert address is not None
        async with open_link(address, name="plant") as link:
            await link.store(subjects.log(at), encode(commit))

    return append_raw


def text_event(text: str = "said") -> SessionEvent:
    return SyntheticAdded(message_id=ids.message_id(), text=text)


async def write(eventlog: EventLog, at: Address, *events: SessionEvent) -> Commit:
    drafts = tuple(Draft(ids.event_id(), 1, event) for event in events)
    head = await eventlog.log.end(at)
    return (await eventlog.log.append(at, ids.commit_id(), drafts, after=head)).commit


def record_at(seq: int, event: SessionEvent, id_: str | None = None) -> Recorded:
    return Recorded(id_ or ids.event_id(), seq, 1, event)


def open_cache(eventlog: EventLog) -> SessionCache[Session]:
    return SessionCache(eventlog.log, eventlog.snapshots, SESSION_FOLD, capacity=10)


async def next_commit(tail: AsyncIterator[StoredCommit]) -> StoredCommit:
    async with asyncio.timeout(20):
        return await anext(tail)


async def test_an_exact_repeat_of_the_last_commit_changes_nothing(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """H-16: for a warm reader, a cold reader, a reader of a snapshot, and a tail."""
    await write(eventlog, at, CREATED)
    last = await write(eventlog, at, text_event(), text_event())
    warm, tail = open_cache(eventlog), eventlog.log.tail(at, after=0)
    before = await warm.load_confirmed(at)
    assert [(await next_commit(tail)).head.seq for _ in range(2)] == [1, 3]
    await plant(last)

    for cache in (warm, open_cache(eventlog)):
        after = await cache.load_confirmed(at)
        assert after.state == before.state
        assert after.head.position > before.head.position
    await warm.save_snapshot(at, before)
    assert (await open_cache(eventlog).load_confirmed(at)).state == before.state

    written = await write_behind(eventlog, at)
    assert written == (await next_commit(tail)).commit
    assert (await open_cache(eventlog).load_confirmed(at)).state.seq == 4


async def write_behind(eventlog: EventLog, at: Address) -> Commit:
    """Write as a service does, from what it has read."""
    cache = open_cache(eventlog)
    writer = SessionWriter(eventlog.log, cache, ids)

    async def decide(_session: Session) -> tuple[tuple[SessionEvent, ...], None]:
        return (text_event(),), None

    last = (await writer.commit(at, decide)).after.versioned.last
    assert last is not None
    return last


async def test_an_exact_repeat_of_an_older_commit_changes_nothing(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """H-16: whatever came after it."""
    await write(eventlog, at, CREATED)
    older = await write(eventlog, at, text_event())
    await write(eventlog, at, text_event())
    warm = open_cache(eventlog)
    before = await warm.load_confirmed(at)
    await plant(older)

    for cache in (warm, open_cache(eventlog)):
        assert (await cache.load_confirmed(at)).state == before.state


async def expect_broken(
    eventlog: EventLog, at: Address, error: type[MalformedCommit], *, first: int
) -> None:
    """Both a cold reader and a tail stop at the strange commit, with the error."""
    with pytest.raises(error):
        await open_cache(eventlog).load_confirmed(at)
    tail = eventlog.log.tail(at, after=0)
    for _ in range(first):
        await next_commit(tail)
    with pytest.raises(error):
        await next_commit(tail)


async def test_other_content_at_a_place_that_is_taken_is_divergent(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """H-17."""
    await write(eventlog, at, CREATED)
    last = await write(eventlog, at, text_event())
    await plant(Commit(last.id, (record_at(2, text_event("other"), last.events[0].id),)))

    await expect_broken(eventlog, at, DivergentCommit, first=2)


async def test_missing_events_are_a_gap(eventlog: EventLog, at: Address, plant: Plant) -> None:
    """H-18."""
    await write(eventlog, at, CREATED)
    await plant(Commit(ids.commit_id(), (record_at(3, text_event()),)))

    await expect_broken(eventlog, at, SequenceGap, first=1)


async def test_a_gap_inside_a_commit_is_a_gap(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """D7: the events of a commit follow each other."""
    await write(eventlog, at, CREATED)
    await plant(Commit(ids.commit_id(), (record_at(2, text_event()), record_at(4, text_event()))))

    await expect_broken(eventlog, at, SequenceGap, first=1)


async def test_an_event_id_of_the_commit_before_is_foreign(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """D7, A2: a fact that was written twice has its id twice."""
    await write(eventlog, at, CREATED)
    last = await write(eventlog, at, text_event())
    await plant(Commit(ids.commit_id(), (record_at(3, text_event(), last.events[0].id),)))

    await expect_broken(eventlog, at, ForeignEventId, first=2)


async def test_a_claim_of_an_old_generation_is_refused(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """D7: no writer writes it, because whoever claims has read the last claim."""
    await write(eventlog, at, CREATED, ExecutionClaimed(generation=2, runner="run_a"))
    await plant(
        Commit(ids.commit_id(), (record_at(3, ExecutionClaimed(generation=1, runner="run_b")),))
    )

    with pytest.raises(MalformedCommit, match="claim 1 after 2"):
        await open_cache(eventlog).load_confirmed(at)


async def test_a_tail_that_begins_at_a_repeated_commit_skips_the_repeat(
    eventlog: EventLog, at: Address, plant: Plant
) -> None:
    """H-16: it has not read the commit that is repeated."""
    await write(eventlog, at, CREATED)
    last = await write(eventlog, at, text_event())
    await plant(last)
    written = await write_behind(eventlog, at)

    assert (await next_commit(eventlog.log.tail(at, after=2))).commit == written
    assert (await eventlog.log.read(at, after=START)).commits
