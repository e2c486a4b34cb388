"""Loading a session: warm, from a snapshot, or all of it; always the same state."""

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, CommitPage
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema.events import SessionPurged
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.folds import SeqFold, Seqs


def open_cache(eventlog: EventLog, capacity: int = 10) -> SessionCache[Seqs]:
    return SessionCache(eventlog.log, eventlog.snapshots, SeqFold(), capacity=capacity)


async def write(eventlog: EventLog, at: Address, commits: int) -> None:
    head = await eventlog.log.head(at)
    for _ in range(commits):
        head = (await eventlog.log.append(at, ids.commit_id(), drafts(2), after=head)).head


async def test_a_session_loads_the_same_with_and_without_its_snapshot(at: Address) -> None:
    eventlog = memory_eventlog()
    await write(eventlog, at, 3)
    first = open_cache(eventlog)
    await first.save_snapshot(at, await first.load(at))
    await write(eventlog, at, 2)

    from_snapshot = await open_cache(eventlog).load(at)
    await eventlog.snapshots.store(at, Snapshot(START, b"foreign"))
    from_all = await open_cache(eventlog).load(at)

    warm = await first.load(at)
    assert from_all.state == tuple(range(1, 11))
    assert from_snapshot[:2] == from_all[:2] == warm[:2]


async def test_what_is_forgotten_is_folded_again(at: Address) -> None:
    eventlog = memory_eventlog()
    other = Address("default", ids.session_id())
    await write(eventlog, at, 1)
    small = open_cache(eventlog, capacity=1)
    await small.load(at)
    await small.load(other)

    assert (await small.load(at)).state == (1, 2)


async def test_a_known_state_is_confirmed_without_another_read(
    at: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A1: the position of the leader is enough."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 2)
    cache = open_cache(eventlog)
    known = await cache.load(at)

    async def no_read(*_args: object, **_kwargs: object) -> CommitPage:
        raise AssertionError("read")

    monkeypatch.setattr(eventlog.log, "read", no_read)

    assert await cache.load_confirmed(at) is known


async def test_a_readable_session_is_kept_for_the_next_reader(
    at: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page of a long session would else fold all of it."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 2)
    cache = open_cache(eventlog)
    first = await cache.load_readable(at)
    folded: list[int] = []
    monkeypatch.setattr(cache, "fold", lambda *_args: folded.append(1))

    assert cache.peek(at) is first.versioned
    assert (await cache.load_readable(at)).versioned is first.versioned
    assert folded == []


async def test_a_log_that_became_shorter_is_folded_from_its_beginning(at: Address) -> None:
    """A1, H-29: an erased log leaves nothing in the cache."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 2)
    cache = open_cache(eventlog)
    await cache.load(at)
    await eventlog.log.erase(at)

    assert (await cache.load_confirmed(at)).state == ()


async def test_an_older_state_never_replaces_a_newer_one(at: Address) -> None:
    """A1: two readers of one process may finish in any order."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 1)
    cache = open_cache(eventlog)
    old = await cache.load(at)
    await write(eventlog, at, 1)
    new = await cache.load(at)

    cache.put(at, old)

    assert cache.peek(at) is new


async def test_the_cache_is_bounded_by_the_bytes_of_its_sessions(at: Address) -> None:
    """A17: long sessions are evicted although their number is small."""
    eventlog = memory_eventlog()
    others = [Address("default", ids.session_id()) for _ in range(3)]
    for one in (at, *others):
        await write(eventlog, one, 4)
    size = (await open_cache(eventlog).load(at)).bytes
    cache = SessionCache(
        eventlog.log, eventlog.snapshots, SeqFold(), capacity=10, bytes_max=size * 5 // 2
    )

    for one in (at, *others):
        await cache.load(one)

    assert size > 0
    assert [one for one in (at, *others) if cache.peek(one) is not None] == others[1:]
    cache.evict(others[2])
    await cache.load(at)
    assert cache.peek(others[1]) is not None, "an evicted session counts no more"


async def test_one_session_larger_than_the_budget_is_kept(at: Address) -> None:
    """A17: the session at work would be folded again at every load."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 4)
    cache = SessionCache(eventlog.log, eventlog.snapshots, SeqFold(), capacity=10, bytes_max=1)

    await cache.load(at)

    assert cache.peek(at) is not None


async def test_a_snapshot_of_a_session_that_was_purged_meanwhile_is_removed(at: Address) -> None:
    """A11: it would keep the whole transcript."""
    eventlog = memory_eventlog()
    await write(eventlog, at, 1)
    cache = open_cache(eventlog)
    known = await cache.load(at)
    purged = (Draft(ids.event_id(), 1, SessionPurged()),)
    last = await eventlog.log.append(at, ids.commit_id(), purged, after=known.head)
    await eventlog.log.erase(at, before=last.position)
    await eventlog.snapshots.remove(at)

    await cache.save_snapshot(at, known)

    assert await eventlog.snapshots.load(at) is None


async def test_a_session_loads_as_it_was_before_a_commit(at: Address) -> None:
    eventlog = memory_eventlog()
    await write(eventlog, at, 4)
    second = (await eventlog.log.read(at, after=START)).commits[1]
    cache = open_cache(eventlog)

    before = await cache.load_before(at, second.position)

    assert before is not None
    assert before.state == (1, 2)
    assert cache.peek(at) == before


async def test_nobody_knows_what_was_before_a_commit_that_a_snapshot_holds(at: Address) -> None:
    eventlog = memory_eventlog()
    await write(eventlog, at, 2)
    first = (await eventlog.log.read(at, after=START)).commits[0]
    cache = open_cache(eventlog)
    await cache.save_snapshot(at, await cache.load(at))

    assert await open_cache(eventlog).load_before(at, first.position) is None
