"""Faults of a cluster, played one by one on a link to a real server (A1, A2, A3, A6)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, LogUnavailable
from fairlead_eventlog.jetstream.connect import connect, open_ports
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import AssumedState, SessionWriter
from fairlead_schema.events import SessionEvent, SyntheticAdded
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.folds import SeqFold, Seqs
from fairlead_testing.nats import Server
from fairlead_testing.scripted_link import ScriptedLink, open_scripted_link

pytestmark = pytest.mark.integration

Events = tuple[SessionEvent, ...]
Read = Callable[[EventLog, Address], Awaitable[object]]

IN_FLIGHT = b'{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}'
ELECTING = b'{"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}}'


class Scripted(NamedTuple):
    """Ports over a scripted link, and the same ports of another process."""

    link: ScriptedLink
    ports: EventLog
    other: EventLog

    def cache(self) -> SessionCache[Seqs]:
        return SessionCache(self.ports.log, self.ports.snapshots, SeqFold(), capacity=10)

    def writer(self, cache: SessionCache[Seqs], *, patience_s: float = 0.0) -> SessionWriter[Seqs]:
        return SessionWriter(self.ports.log, cache, ids, patience_s=patience_s, retry_s=0.01)

    async def write_as_other(self, at: Address, count: int = 1) -> Head:
        head = await self.other.log.head(at)
        for _ in range(count):
            stored = await self.other.log.append(at, ids.commit_id(), drafts(), after=head)
            head = stored.head
        return head

    async def event_ids(self, at: Address) -> list[str]:
        page = await self.other.log.read(at, after=START)
        return [event.id for stored in page.commits for event in stored.commit.events]


def script_ports(link: ScriptedLink, *, append_patience_s: float) -> EventLog:
    return open_ports(link, JetStreamLogStatus(link), append_patience_s=append_patience_s)


@pytest.fixture
async def scripted(server: Server) -> AsyncIterator[Scripted]:
    async with (
        open_scripted_link(server.address) as link,
        connect(server.address, name="other") as other,
    ):
        yield Scripted(link, script_ports(link, append_patience_s=20.0), other)


def fact() -> SessionEvent:
    return SyntheticAdded(message_id=ids.message_id(), text="said")


async def read_log(ports: EventLog, at: Address) -> object:
    return await ports.log.read(at, after=START)


async def load_session(ports: EventLog, at: Address) -> object:
    return await SessionCache(ports.log, ports.snapshots, SeqFold(), capacity=1).load(at)


READS: list[Read] = [
    read_log,
    load_session,
    lambda ports, at: ports.snapshots.load(at),
    lambda ports, at: ports.sources.get_all(at.tenant),
    lambda ports, at: ports.tool_registrations.get_all(at.tenant),
    lambda ports, _at: ports.transforms.get_all_tenants(),
]
READ_NAMES = ["log", "session", "snapshot", "sources", "registrations", "transforms"]


@pytest.mark.parametrize("read", READS, ids=READ_NAMES)
@pytest.mark.parametrize("status", ["503", "408", "413", "500"])
async def test_a_read_that_nobody_answered_does_not_mean_that_nothing_is_there(
    scripted: Scripted, at: Address, read: Read, status: str
) -> None:
    """A6: registered sources and tools would vanish, and a child would have used nothing."""
    await scripted.write_as_other(at)
    scripted.link.read_status = status

    with pytest.raises(LogUnavailable, match=status if status != "503" else "nobody serves"):
        await read(scripted.ports, at)


@pytest.mark.parametrize("read", READS, ids=READ_NAMES)
async def test_streams_that_do_not_exist_are_not_empty(
    own_server: Server, at: Address, read: Read
) -> None:
    """A6: the server itself says that nobody answers."""
    async with connect(own_server.address, name="test", timeout_s=2.0) as ports:
        with pytest.raises(LogUnavailable, match="nobody serves"):
            await read(ports, at)


async def test_more_registrations_than_one_answer_holds_are_all_read(server: Server) -> None:
    """A6: the server refuses more than 1,024 subjects in one answer."""
    tenant, count = "crowded", 1_100
    async with connect(server.address, name="test", timeout_s=60.0) as ports:
        put = ports.tool_registrations.put
        await asyncio.gather(*(put(tenant, f"k{n}", b"v") for n in range(count)))
        found = await ports.tool_registrations.get_all(tenant)

    assert found == {f"k{n}": b"v" for n in range(count)}


async def test_a_session_that_a_replica_does_not_know_yet_is_found(
    scripted: Scripted, at: Address
) -> None:
    """A1: created through one node, prompted through another."""
    head = await scripted.write_as_other(at, 2)
    scripted.link.lag(head.position - 2, reads=3)

    assert (await scripted.cache().load_confirmed(at)).state == (1, 2)


async def test_a_reader_that_knows_a_position_reads_up_to_it(
    scripted: Scripted, at: Address
) -> None:
    """A1: a wake names its position, and its taker waits for the replica."""
    head = await scripted.write_as_other(at, 3)
    scripted.link.lag(head.position - 1, reads=3)

    assert (await scripted.cache().load(at, reach=head.position)).state == (1, 2, 3)


async def test_nothing_to_do_is_decided_from_the_end_of_the_leader(
    scripted: Scripted, at: Address
) -> None:
    """A1: an interrupt of a session that seems idle, an acknowledged wake, a second look."""
    head = await scripted.write_as_other(at, 3)
    scripted.link.lag(head.position - 1, reads=2)
    decided_from: list[Seqs] = []

    async def decide(state: Seqs) -> tuple[Events, None]:
        decided_from.append(state)
        return ((fact(),) if len(state) == 3 else ()), None

    written = await scripted.writer(scripted.cache()).commit(at, decide)

    assert decided_from == [(1, 2), (1, 2, 3)]
    assert written.after.state == (1, 2, 3, 4)


async def test_a_refusal_is_told_only_if_the_leader_has_nothing_newer(
    scripted: Scripted, at: Address
) -> None:
    """A1: `SessionNotFound` of a session that exists."""
    head = await scripted.write_as_other(at, 1)
    scripted.link.lag(head.position - 1, reads=2)

    async def decide(state: Seqs) -> tuple[Events, str]:
        if not state:
            raise LookupError("no such session")
        return (), "found"

    unknown = Address(at.tenant, ids.session_id())

    assert (await scripted.writer(scripted.cache()).commit(at, decide)).value == "found"
    with pytest.raises(LookupError, match="no such session"):
        await scripted.writer(scripted.cache()).commit(unknown, decide)


async def test_a_refusal_that_nobody_can_confirm_is_an_outage(
    scripted: Scripted, at: Address
) -> None:
    """A1, A6: not found and not available are two things."""
    cache = scripted.cache()
    known = await cache.load(at)

    async def decide(_state: Seqs) -> tuple[Events, None]:
        raise LookupError("no such session")

    scripted.link.election = 1
    with pytest.raises(LogUnavailable):
        await scripted.writer(cache).commit(at, decide, assumed=AssumedState(known))


async def next_commit(tail: AsyncIterator[StoredCommit]) -> StoredCommit:
    async with asyncio.timeout(20):
        return await anext(tail)


async def test_a_tail_begins_with_what_the_leader_has(scripted: Scripted, at: Address) -> None:
    """A1: it missed the last commit for up to 30 s."""
    head = await scripted.write_as_other(at, 3)
    scripted.link.lag(head.position - 1, reads=4)
    tail = scripted.ports.log.tail(at, after=0)

    assert [(await next_commit(tail)).head.seq for _ in range(3)] == [1, 2, 3]


async def test_a_tail_reads_up_to_the_leader_after_a_reconnection(
    scripted: Scripted, at: Address
) -> None:
    """A1: broadcasts were missed meanwhile, and the next replica may lag."""
    await scripted.write_as_other(at, 1)
    tail = scripted.ports.log.tail(at, after=0)
    await next_commit(tail)
    waiting = asyncio.create_task(next_commit(tail))
    await asyncio.sleep(0.05)
    await scripted.link.client.flush()

    subscriptions = scripted.link.client._subs  # noqa: SLF001 - the broadcast of the commit is lost
    lost = [sub for sub in subscriptions.values() if "commit" in sub.subject]
    for subscription in lost:
        await subscription.unsubscribe()
    head = await scripted.write_as_other(at, 1)
    scripted.link.lag(head.position - 1, reads=2)
    scripted.link.reconnect()

    assert (await waiting).head == head


@pytest.mark.parametrize("lagging_reads", [0, 3], ids=["current", "lagging"])
async def test_a_lost_acknowledgement_writes_facts_once(
    scripted: Scripted, at: Address, lagging_reads: int
) -> None:
    """A2: `step.ended` stood twice in the log, and its cost was doubled."""
    cache = scripted.cache()
    head = await scripted.write_as_other(at, 1)
    known, facts = await cache.load(at), (fact(),)
    scripted.link.lost_acks = 1
    scripted.link.lag(head.position, reads=lagging_reads)

    async def decide(_state: Seqs) -> tuple[Events, None]:
        return facts, None

    written = await scripted.writer(cache).commit(at, decide, assumed=AssumedState(known))

    assert written.after.state == (1, 2)
    assert len(await scripted.event_ids(at)) == 2
    assert len(set(scripted.link.stores)) == 1, "the same commit, with the same ids"


async def test_an_own_commit_is_found_before_those_of_others_on_a_lagging_replica(
    scripted: Scripted, at: Address
) -> None:
    """A2: another writer came right after it."""
    commit_id, mine = ids.commit_id(), drafts()
    stored = await scripted.ports.log.append(at, commit_id, mine, after=START)
    await scripted.write_as_other(at, 1)
    scripted.link.lag(stored.position - 1, reads=3)

    assert await scripted.ports.log.append(at, commit_id, mine, after=START) == stored
    assert len(await scripted.event_ids(at)) == 2


async def test_a_lost_race_is_told_although_the_replica_lags(
    scripted: Scripted, at: Address
) -> None:
    """A2: the writer that lost reads what the winner wrote before it decides again."""
    cache = scripted.cache()
    head = await scripted.write_as_other(at, 1)
    known = await cache.load(at)
    await scripted.write_as_other(at, 1)
    scripted.link.lag(head.position, reads=3)
    decided_from: list[Seqs] = []

    async def decide(state: Seqs) -> tuple[Events, None]:
        decided_from.append(state)
        return (fact(),), None

    written = await scripted.writer(cache).commit(at, decide, assumed=AssumedState(known))

    assert decided_from == [(1,), (1, 2)]
    assert written.after.state == (1, 2, 3)


async def test_the_same_events_keep_their_ids_when_a_race_was_lost(
    scripted: Scripted, at: Address
) -> None:
    """A2: an event id stands at one place at most, whatever became of an earlier try."""
    cache = scripted.cache()
    await scripted.write_as_other(at, 1)
    known, facts = await cache.load(at), (fact(),)
    await scripted.write_as_other(at, 1)

    async def decide(_state: Seqs) -> tuple[Events, None]:
        return facts, None

    await scripted.writer(cache).commit(at, decide, assumed=AssumedState(known))

    ours = [body for body in scripted.link.stores if b"commit" in body or b"evt_" in body]
    assert len(ours) == 2
    stored = await scripted.event_ids(at)
    assert len(stored) == len(set(stored)) == 3
    assert stored[-1].encode() in ours[0]
    assert stored[-1].encode() in ours[1]


async def test_a_place_that_a_commit_on_its_way_holds_is_tried_again(
    scripted: Scripted, at: Address
) -> None:
    """A2: the leader refuses, and has nothing newer yet: no conclusion is possible."""
    scripted.link.refusals = [IN_FLIGHT, IN_FLIGHT]

    stored = await scripted.ports.log.append(at, ids.commit_id(), drafts(), after=START)

    assert await scripted.other.log.head(at) == stored.head


async def test_an_append_outlives_an_election(scripted: Scripted, at: Address) -> None:
    """A3: an append gave up after 0.6 s, and its turn was lost and billed again."""
    commit_id = ids.commit_id()
    scripted.link.election = 6
    scripted.link.refusals = [ELECTING]
    scripted.link.lost_stores = 1

    stored = await scripted.ports.log.append(at, commit_id, drafts(), after=START)

    assert stored.commit.id == commit_id
    assert len(await scripted.event_ids(at)) == 1
    assert len(set(scripted.link.stores)) == 1
    assert len(scripted.link.stores) > 3, "it was tried again more often than before"


async def test_an_append_gives_up_after_its_patience(scripted: Scripted, at: Address) -> None:
    """A3: the caller then hears that the outcome is unknown."""
    impatient = script_ports(scripted.link, append_patience_s=0.2)
    scripted.link.election = 1_000

    with pytest.raises(LogUnavailable, match="no acknowledgement"):
        await impatient.log.append(at, ids.commit_id(), drafts(), after=START)


async def test_a_patient_append_is_cancelled_at_once(scripted: Scripted, at: Address) -> None:
    """A3: a departure does not wait for an election."""
    scripted.link.election = 1_000
    appending = asyncio.create_task(
        scripted.ports.log.append(at, ids.commit_id(), drafts(), after=START)
    )
    await asyncio.sleep(0.05)
    appending.cancel()

    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await appending


async def test_a_read_that_a_turn_needs_outlives_an_election(
    scripted: Scripted, at: Address
) -> None:
    """A3: one read without an answer must not cost a turn."""
    await scripted.write_as_other(at, 2)
    writer = scripted.writer(scripted.cache(), patience_s=20.0)
    scripted.link.election = 5

    assert (await writer.read(at)).state == (1, 2)
    scripted.link.election = 5
    assert (await writer.read_confirmed(at)).state == (1, 2)


async def test_a_stale_append_is_a_conflict_on_a_lagging_replica_too(
    scripted: Scripted, at: Address
) -> None:
    """A2: the conflict names a position that the log has."""
    first = await scripted.write_as_other(at, 1)
    second = await scripted.write_as_other(at, 1)
    scripted.link.lag(first.position, reads=2)

    with pytest.raises(AppendConflict) as conflict:
        await scripted.ports.log.append(at, ids.commit_id(), drafts(), after=first)

    assert conflict.value.actual == second.position


async def test_a_snapshot_is_used_whatever_its_replica_lacks(
    scripted: Scripted, at: Address
) -> None:
    """A6: no snapshot is an answer: the log has every event."""
    head = await scripted.write_as_other(at, 2)
    await scripted.other.snapshots.store(at, Snapshot(head, b"1,2"))
    scripted.link.lag(0, reads=1)

    assert (await scripted.cache().load(at)).state == (1, 2)
