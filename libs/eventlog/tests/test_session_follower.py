"""Following sessions by broadcasts: up to date without a read, and a read where anything is missing."""

import asyncio
from collections.abc import Callable

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable, SessionErased
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.provision import provision
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_eventlog.session_follower import WAITING_MAX, SessionFollower
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_schema.events import SessionEvent, SessionPurged, SyntheticAdded
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.folds import SeqFold, Seqs
from fairlead_testing.nats import Server

WAIT_S = 20.0


class FaultyBroadcasts:
    """Broadcasts that a test delivers itself: late, twice, in another order, or never."""

    def __init__(self, eventlog: EventLog) -> None:
        self._broadcasts = eventlog.broadcasts
        self._receive: Callable[[CommitHint | None], None] | None = None
        self.held: list[CommitHint | None] = []

    async def listen(
        self, at: Address, receive: Callable[[CommitHint | None], None]
    ) -> Callable[[], None]:
        self._receive = receive
        return await self._broadcasts.listen(at, self.held.append)

    def deliver(self, *commits: CommitHint | None) -> None:
        assert self._receive is not None
        for commit in commits:
            self._receive(commit)


class AbsentBroadcasts:
    """Broadcasts of a log that is away."""

    async def listen(
        self, at: Address, receive: Callable[[CommitHint | None], None]
    ) -> Callable[[], None]:
        raise LogUnavailable(f"{receive} hears nothing of {at}")


class World:
    """A session, a cache that has it, and its follower."""

    def __init__(self, eventlog: EventLog, at: Address, **limits: int) -> None:
        self.at = at
        self.log = eventlog.log
        self.broadcasts = FaultyBroadcasts(eventlog)
        self.cache = SessionCache(self.log, eventlog.snapshots, SeqFold(), capacity=10)
        self.follower = SessionFollower(eventlog.broadcasts, self.cache, **limits)
        self.held = SessionFollower(self.broadcasts, self.cache)

    async def write_as_other(self, count: int = 1) -> Head:
        head = await self.log.head(self.at)
        for _ in range(count):
            head = (await self.log.append(self.at, ids.commit_id(), drafts(), after=head)).head
        return head

    async def wait_for_broadcasts(self) -> None:
        """Write until a broadcast comes: the nodes of a cluster tell each other of a subscription."""
        head = await self.write_as_other()
        async with asyncio.timeout(WAIT_S):
            while (known := self.follower.assume(self.at)) is None or known.head != head:
                await self.cache.load_confirmed(self.at)
                head = await self.write_as_other()
                await asyncio.sleep(0.05)

    async def wait_for(self, head: Head) -> Versioned[Seqs]:
        """The followed state as soon as it has come as far as a head."""
        async with asyncio.timeout(WAIT_S):
            while True:
                known = self.follower.peek(self.at)
                if known is not None and known.head == head:
                    return known
                await asyncio.sleep(0.001)


def forbid_reads(monkeypatch: pytest.MonkeyPatch, eventlog: EventLog) -> None:
    async def no_read(*_args: object, **_kwargs: object) -> CommitPage:
        raise AssertionError("read")

    for name in ("read", "last_commit_position"):
        monkeypatch.setattr(eventlog.log, name, no_read)


async def hold_world(at: Address) -> World:
    """A world in memory whose session is followed, and whose broadcasts the test delivers."""
    world = World(memory_eventlog(), at)
    await world.write_as_other()
    await world.cache.load(at)
    await world.held.follow(at)
    return world


async def test_a_followed_session_has_the_commits_of_others_without_a_read(
    eventlog: EventLog, at: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(eventlog, at)
    await world.write_as_other()
    await world.cache.load_confirmed(at)
    assert world.follower.assume(at) is None, "nobody follows it yet"

    await world.follower.follow(at)
    await world.wait_for_broadcasts()
    head = await world.write_as_other(3)
    with monkeypatch.context() as forbidden:
        forbid_reads(forbidden, eventlog)
        known = await world.wait_for(head)

    assert known.state == tuple(range(1, head.seq + 1))


async def test_a_lost_broadcast_is_noticed_and_read(at: Address) -> None:
    world = await hold_world(at)
    head = await world.write_as_other(2)
    lost, next_one = world.broadcasts.held
    assert lost is not None

    world.broadcasts.deliver(next_one)

    assert world.held.peek(at) is None
    assert world.held.assume(at) is None, "a look does not make it whole"
    assert (await world.cache.load(at)).head == head
    known = world.held.assume(at)
    assert known is not None
    assert known.head == head


async def test_broadcasts_in_another_order_or_twice_change_nothing(at: Address) -> None:
    world = await hold_world(at)
    head = await world.write_as_other(2)
    first, second = world.broadcasts.held

    world.broadcasts.deliver(first, first, second, first)
    twice = world.held.assume(at)
    assert twice is not None
    assert (twice.state, twice.head) == ((1, 2, 3), head)

    world.broadcasts.held.clear()
    last = await world.write_as_other(2)
    world.broadcasts.deliver(*reversed(world.broadcasts.held))

    assert world.held.assume(at) is None
    assert (await world.cache.load(at)).head == last


async def test_a_lost_last_broadcast_costs_a_conflict_and_nothing_else(at: Address) -> None:
    """The log refuses what was decided from an old state, and the writer reads on."""
    world = await hold_world(at)
    await world.write_as_other()
    writer, decided_from = SessionWriter(world.log, world.cache, ids), []
    old = world.held.assume(at)
    assert old is not None

    async def decide(state: Seqs) -> tuple[tuple[SessionEvent, ...], None]:
        decided_from.append(state)
        return (SyntheticAdded(message_id=ids.message_id(), text="said"),), None

    written = await writer.commit(at, decide, assumed=AssumedState(old))

    assert decided_from == [(1,), (1, 2)]
    assert written.after.state == (1, 2, 3)


async def test_nobody_decides_to_write_nothing_from_an_old_state(at: Address) -> None:
    """ADR 0025: without events the leader is asked, whatever the broadcasts said."""
    world = await hold_world(at)
    await world.write_as_other()
    writer, decided_from = SessionWriter(world.log, world.cache, ids), []
    old = world.held.assume(at)
    assert old is not None

    async def decide(state: Seqs) -> tuple[tuple[SessionEvent, ...], None]:
        decided_from.append(state)
        return (), None

    await writer.commit(at, decide, assumed=AssumedState(old))

    assert decided_from == [(1,), (1, 2)]


async def test_after_a_reconnection_a_session_is_read_once(at: Address) -> None:
    world = await hold_world(at)

    world.broadcasts.deliver(None)

    assert world.held.peek(at) is None
    assert world.held.assume(at) is None
    await world.cache.load(at)
    assert world.held.assume(at) is not None


@pytest.mark.integration
async def test_what_was_missed_during_a_restart_of_the_server_is_read(
    own_server: Server, at: Address
) -> None:
    await provision(own_server.address)
    async with (
        connect(own_server.address, name="follower") as eventlog,
        connect(own_server.address, name="other") as other,
    ):
        world, writer = World(eventlog, at), World(other, at)
        await writer.write_as_other()
        await world.cache.load_confirmed(at)
        await world.follower.follow(at)
        await world.wait_for(await writer.write_as_other())
        own_server.kill()
        own_server.start()
        async with asyncio.timeout(WAIT_S):
            while world.follower.peek(at) is not None or other.complaint() is not None:
                await asyncio.sleep(0.01)
        head = await writer.write_as_other()

        assert world.follower.assume(at) is None
        assert (await world.cache.load_confirmed(at)).head == head
        known = await world.wait_for(await writer.write_as_other())

    assert known.state == (1, 2, 3, 4)


async def test_a_purge_is_followed_and_an_erased_log_is_noticed(at: Address) -> None:
    """H-29: nothing is written behind the last word of a session."""
    world = await hold_world(at)
    writer = SessionWriter(world.log, world.cache, ids)
    purge = (Draft(ids.event_id(), ids.now_ms(), SessionPurged()),)
    stored = await world.log.append(at, ids.commit_id(), purge, after=await world.log.head(at))
    world.broadcasts.deliver(*world.broadcasts.held)

    async def decide(_state: Seqs) -> tuple[tuple[SessionEvent, ...], None]:
        return (SyntheticAdded(message_id=ids.message_id(), text="said"),), None

    known = world.held.assume(at)
    assert known is not None
    assert known.head == stored.head
    with pytest.raises(SessionErased):
        await writer.commit(at, decide, assumed=AssumedState(known))

    await world.log.erase(at)
    assert (await world.cache.load_confirmed(at)).state == ()


async def test_an_unreadable_broadcast_leaves_it_to_the_log(at: Address) -> None:
    world = await hold_world(at)
    known = world.cache.peek(at)
    assert known is not None

    world.broadcasts.deliver(CommitHint(9, known.head.position, b"?"))

    assert world.held.assume(at) is None
    assert world.cache.peek(at) == known


async def test_only_the_sessions_of_the_last_commands_are_followed(at: Address) -> None:
    eventlog = memory_eventlog()
    assert isinstance(eventlog.log, MemoryLog)
    world = World(eventlog, at, sessions_max=2)
    others = [Address("default", ids.session_id()) for _ in range(2)]

    for followed in (at, *others):
        await world.follower.follow(followed)

    listeners = eventlog.log.listeners
    assert [len(listeners[followed]) for followed in (at, *others)] == [0, 1, 1]


@pytest.mark.parametrize("limits", [{}, {"bytes_max": 2000}], ids=["commits", "bytes"])
async def test_what_waits_is_bounded(at: Address, limits: dict[str, int]) -> None:
    """A session that others write to for long is not followed until its next command."""
    eventlog = memory_eventlog()
    assert isinstance(eventlog.log, MemoryLog)
    world = World(eventlog, at, **limits)
    await world.write_as_other()
    await world.cache.load(at)
    await world.follower.follow(at)

    await world.write_as_other(WAITING_MAX + 1)

    assert world.follower.peek(at) is None
    assert eventlog.log.listeners[at] == []


async def test_a_restored_log_is_followed_afresh(at: Address) -> None:
    world = await hold_world(at)

    world.held.forget_all()
    world.broadcasts.deliver(CommitHint(9, 1, b"late"))

    assert world.held.assume(at) is None
    await world.held.follow(at)
    assert world.held.assume(at) is not None


async def test_without_broadcasts_a_session_is_read(at: Address) -> None:
    world = await hold_world(at)
    for follower in (
        SessionFollower(AbsentBroadcasts(), world.cache),
        SessionFollower(world.broadcasts, world.cache, sessions_max=0),
    ):
        await follower.follow(at)

        assert follower.assume(at) is None
