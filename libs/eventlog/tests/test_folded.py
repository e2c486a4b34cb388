"""Loading a session: warm, from a snapshot, or all of it; always the same state."""

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, Snapshot
from fairlead_eventlog.session_cache import SessionCache
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts

State = tuple[int, ...]


class Sequences:
    """Folds a log into the sequences of its events."""

    def initial(self, _at: Address) -> State:
        return ()

    def evolve(self, state: State, recorded: Recorded) -> State:
        return (*state, recorded.seq)

    def freeze(self, state: State) -> bytes:
        return ",".join(map(str, state)).encode()

    def thaw(self, raw: bytes) -> State | None:
        return tuple(map(int, raw.split(b","))) if raw != b"foreign" else None


def folded(eventlog: EventLog, capacity: int = 10) -> SessionCache[State]:
    return SessionCache(eventlog.log, eventlog.snapshots, Sequences(), capacity=capacity)


async def write(eventlog: EventLog, at: Address, commits: int) -> None:
    head = await eventlog.log.head(at)
    for _ in range(commits):
        head = (await eventlog.log.append(at, ids.commit_id(), drafts(2), after=head)).head


async def test_a_session_loads_the_same_with_and_without_its_snapshot(at: Address) -> None:
    eventlog = memory_eventlog()
    await write(eventlog, at, 3)
    first = folded(eventlog)
    known = await first.load(at)
    await first.save_snapshot(at, known)
    await write(eventlog, at, 2)

    from_snapshot = await folded(eventlog).load(at)
    await eventlog.snapshots.store(at, Snapshot(START, b"foreign"))
    from_all = await folded(eventlog).load(at)

    assert from_snapshot == from_all
    assert from_all.state == tuple(range(1, 11))
    assert await first.load(at) == from_all


async def test_what_is_forgotten_is_folded_again(at: Address) -> None:
    eventlog = memory_eventlog()
    other = Address("default", ids.session_id())
    await write(eventlog, at, 1)
    small = folded(eventlog, capacity=1)
    await small.load(at)
    await small.load(other)

    assert (await small.load(at)).state == (1, 2)
