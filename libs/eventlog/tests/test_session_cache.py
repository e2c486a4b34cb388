"""Loading a session: warm, from a snapshot, or all of it; always the same state."""

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, Snapshot
from fairlead_eventlog.session_cache import SessionCache
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

    assert from_snapshot == from_all
    assert from_all.state == tuple(range(1, 11))
    assert await first.load(at) == from_all


async def test_what_is_forgotten_is_folded_again(at: Address) -> None:
    eventlog = memory_eventlog()
    other = Address("default", ids.session_id())
    await write(eventlog, at, 1)
    small = open_cache(eventlog, capacity=1)
    await small.load(at)
    await small.load(other)

    assert (await small.load(at)).state == (1, 2)
