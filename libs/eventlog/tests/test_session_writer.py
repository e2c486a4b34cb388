"""The session writer: decide, append, and decide again, in memory and on JetStream alike."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, LogUnavailable, SessionBusy, SessionErased
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import CommitPage, EntryPage, Head, SessionLog, StoredCommit
from fairlead_eventlog.provision import provision
from fairlead_eventlog.session_cache import SessionCache, Versioned
from fairlead_eventlog.session_writer import AssumedState, Decide, SessionWriter
from fairlead_schema.events import SessionEvent, SyntheticAdded
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.record import Commit, Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.commits import read_all
from fairlead_testing.events import drafts
from fairlead_testing.folds import SeqFold, Seqs
from fairlead_testing.nats import Server

Events = tuple[SessionEvent, ...]


class FaultyLog:
    """A log that records its appends, and fails before or after some of them."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self.commit_ids: list[CommitId] = []
        self.conflicts = 0
        self.fail_before = 0
        self.fail_after = 0
        self.on_lost: Callable[[], Awaitable[object]] | None = None

    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        self.commit_ids.append(commit_id)
        if self.fail_before:
            self.fail_before -= 1
            raise LogUnavailable("the server is away")
        try:
            stored = await self._log.append(at, commit_id, drafts, after=after, by=by)
        except AppendConflict:
            self.conflicts += 1
            raise
        if self.fail_after:
            self.fail_after -= 1
            if self.on_lost is not None:
                await self.on_lost()
            raise LogUnavailable("the acknowledgement was lost")
        return stored

    async def read(
        self, at: Address, *, after: Head, limit: int = 500, reach: int = 0
    ) -> CommitPage:
        return await self._log.read(at, after=after, limit=limit, reach=reach)

    async def read_entries(
        self, at: Address, *, after: int, limit: int = 500, reach: int = 0
    ) -> EntryPage:
        return await self._log.read_entries(at, after=after, limit=limit, reach=reach)

    async def restore(
        self, at: Address, commit: Commit, payload: bytes, *, after: Head
    ) -> StoredCommit:
        return await self._log.restore(at, commit, payload, after=after)

    async def last_commit_position(self, at: Address) -> int:
        return await self._log.last_commit_position(at)

    async def locate(self, at: Address, seq: int) -> Head:
        return await self._log.locate(at, seq)

    async def end(self, at: Address) -> Head:
        return await self._log.end(at)

    async def head(self, at: Address) -> Head:
        return await self._log.head(at)

    def tail(self, at: Address, *, after: int) -> AsyncIterator[StoredCommit]:
        return self._log.tail(at, after=after)

    async def erase(self, at: Address, *, before: int | None = None) -> None:
        await self._log.erase(at, before=before)


class World:
    """A session with two commits of its own, a writer, and other writers."""

    def __init__(self, eventlog: EventLog, at: Address) -> None:
        self.at = at
        self.log = FaultyLog(eventlog.log)
        self.cache = SessionCache(self.log, eventlog.snapshots, SeqFold(), capacity=10)
        self._direct = eventlog.log
        self.decided_from: list[Seqs] = []

    def writer(
        self, *, tries_max: int | None = None, patience_s: float = 0.0
    ) -> SessionWriter[Seqs]:
        return SessionWriter(
            self.log,
            self.cache,
            ids,
            tries_max=tries_max,
            patience_s=patience_s,
            retry_s=0.01,
        )

    async def write_as_other(self, count: int = 1) -> Head:
        """Append as another process does; the answer is the new head."""
        head = await self._direct.head(self.at)
        for _ in range(count):
            head = (await self._direct.append(self.at, ids.commit_id(), drafts(), after=head)).head
        return head

    async def stored_commits(self) -> int:
        return len(await read_all(self._direct, self.at))

    def decide(
        self, wanted: Callable[[Seqs], int] = lambda _state: 1, *, overtaken: int = 0
    ) -> Decide[Seqs, Seqs]:
        """Write `wanted(state)` events; before the first decisions return, another writer appends."""
        left = overtaken

        async def decide(state: Seqs) -> tuple[Events, Seqs]:
            nonlocal left
            self.decided_from.append(state)
            if left:
                left -= 1
                await self.write_as_other()
            return tuple(event() for _ in range(wanted(state))), state

        return decide


def event() -> SessionEvent:
    return SyntheticAdded(message_id=ids.message_id(), text="said")


@pytest.fixture
async def world(eventlog: EventLog, at: Address) -> World:
    world = World(eventlog, at)
    await world.write_as_other(2)
    await world.cache.load_confirmed(at)
    return world


async def test_a_decision_is_written_and_answered_with_the_session_after_it(world: World) -> None:
    written = await world.writer().commit(world.at, world.decide(lambda _state: 2))

    assert written.after.state == (1, 2, 3, 4)
    assert written.value == (1, 2)
    assert await world.stored_commits() == 3
    assert world.cache.peek(world.at) == written.after.versioned


async def test_after_a_conflict_the_writer_decides_again_from_what_the_other_wrote(
    world: World,
) -> None:
    written = await world.writer().commit(world.at, world.decide(overtaken=2))

    assert world.decided_from == [(1, 2), (1, 2, 3), (1, 2, 3, 4)]
    assert written.after.state == (1, 2, 3, 4, 5)
    assert written.value == (1, 2, 3, 4), "the value is that of the decision that was written"
    assert await world.stored_commits() == 5


async def test_one_commit_id_serves_all_tries(world: World) -> None:
    await world.writer().commit(world.at, world.decide(overtaken=2))

    assert len(world.log.commit_ids) >= 3
    assert len(set(world.log.commit_ids)) == 1


async def test_a_bounded_writer_gives_up_a_busy_session(world: World) -> None:
    with pytest.raises(SessionBusy):
        await world.writer(tries_max=3).commit(world.at, world.decide(overtaken=100))

    assert len(world.decided_from) == 3
    assert await world.stored_commits() == 2 + 3, "only the other writer wrote"


async def test_nothing_is_written_when_nothing_is_decided(world: World) -> None:
    written = await world.writer().commit(world.at, world.decide(lambda _state: 0))

    assert written.after.state == (1, 2)
    assert world.log.commit_ids == []


async def test_a_lost_acknowledgement_does_not_write_twice(world: World) -> None:
    world.log.fail_after = 2

    written = await world.writer(patience_s=inf).commit(world.at, world.decide())

    assert written.after.state == (1, 2, 3)
    assert len(world.log.commit_ids) >= 3
    assert await world.stored_commits() == 3
    assert world.decided_from == [(1, 2)], "an append with an unknown outcome is not decided again"


async def test_a_commit_whose_acknowledgement_was_lost_is_found_before_those_of_others(
    world: World,
) -> None:
    world.log.fail_after = 1
    world.log.on_lost = world.write_as_other
    writer = world.writer(patience_s=inf)

    written = await writer.commit(world.at, world.decide())

    assert written.after.state == (1, 2, 3)
    assert await world.stored_commits() == 4
    assert (await writer.read(world.at)).state == (1, 2, 3, 4)
    assert world.decided_from == [(1, 2)]


async def test_a_writer_that_does_not_wait_says_that_the_log_is_away(world: World) -> None:
    world.log.fail_before = 1

    with pytest.raises(LogUnavailable):
        await world.writer().commit(world.at, world.decide())

    assert await world.stored_commits() == 2


async def test_a_waiting_writer_writes_once_the_log_is_back(world: World) -> None:
    world.log.fail_before = 3

    written = await world.writer(patience_s=inf).commit(world.at, world.decide())

    assert written.after.state == (1, 2, 3)
    assert await world.stored_commits() == 3


async def test_an_assumed_state_spares_the_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = await world.cache.load(world.at)
    writer = world.writer()

    async def no_read(_at: Address) -> Versioned[Seqs]:
        raise AssertionError("read")

    monkeypatch.setattr(world.cache, "load", no_read)
    written = await writer.commit(world.at, world.decide(), assumed=AssumedState(known))

    assert written.after.state == (1, 2, 3)


@pytest.mark.parametrize("complete", [True, False], ids=["complete", "partial"])
async def test_a_decision_from_a_stale_assumed_state_is_made_again(
    world: World, *, complete: bool
) -> None:
    known = await world.cache.load(world.at)
    state: Seqs = known.state if complete else (99,)
    await world.write_as_other()

    written = await world.writer().commit(
        world.at, world.decide(), assumed=AssumedState(Versioned(state, known.head), complete)
    )

    assert world.decided_from == [state, (1, 2, 3)]
    assert written.after.state == (1, 2, 3, 4)
    assert written.after.complete, "the second decision came from the log"


async def test_an_assumed_state_behind_what_the_process_has_seen_is_not_tried(world: World) -> None:
    writer = world.writer()
    assumed = AssumedState(await world.cache.load(world.at))
    await writer.commit(world.at, world.decide())
    world.decided_from.clear()

    await writer.commit(world.at, world.decide(), assumed=assumed)

    assert world.decided_from == [(1, 2, 3)]
    assert world.log.conflicts == 0


async def test_a_partial_state_is_never_cached(world: World) -> None:
    state: Seqs = (99,)
    world.cache.evict(world.at)
    partial = AssumedState(Versioned(state, await world.log.head(world.at)), complete=False)

    written = await world.writer().commit(world.at, world.decide(), assumed=partial)

    assert written.after.state == (99, 3)
    assert not written.after.complete
    assert world.cache.peek(world.at) is None


async def test_to_write_nothing_is_decided_from_the_log_alone(world: World) -> None:
    known = await world.cache.load(world.at)
    await world.write_as_other()

    written = await world.writer().commit(
        world.at, world.decide(lambda state: int(len(state) > 2)), assumed=AssumedState(known)
    )

    assert world.decided_from == [(1, 2), (1, 2, 3)]
    assert written.after.state == (1, 2, 3, 4)


async def test_an_erased_session_cannot_be_written_to(world: World) -> None:
    writer = world.writer()
    await writer.read(world.at)
    known = await world.cache.load(world.at)
    await world.log.erase(world.at)

    with pytest.raises(SessionErased):
        await writer.commit(world.at, world.decide(), assumed=AssumedState(known))

    assert await world.log.last_commit_position(world.at) == 0
    assert world.cache.peek(world.at) is None, "the next reader starts from the log"


async def test_writers_of_one_process_do_not_race_for_a_session(world: World) -> None:
    writer = world.writer()

    await asyncio.gather(*(writer.commit(world.at, world.decide()) for _ in range(8)))

    assert world.log.conflicts == 0
    assert await world.stored_commits() == 10


async def test_writers_of_several_processes_all_get_through(world: World) -> None:
    writers = [world.writer() for _ in range(4)]

    await asyncio.gather(*(writer.commit(world.at, world.decide()) for writer in writers))

    assert await world.stored_commits() == 6


async def test_an_exception_of_the_decision_frees_the_session(world: World) -> None:
    writer = world.writer()

    async def refuse(_state: Seqs) -> tuple[Events, None]:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        await writer.commit(world.at, refuse)
    async with asyncio.timeout(5):
        await writer.commit(world.at, world.decide())


async def test_an_append_does_not_fold_what_the_caller_has_folded(world: World) -> None:
    writer = world.writer()
    known = await writer.read(world.at)

    async with writer.lock(world.at):
        written = await writer.append(
            world.at, known, writer.drafts((event(),)), commit_id=ids.commit_id(), folded=(7, 7)
        )

    assert written.state == (7, 7)
    with pytest.raises(AppendConflict):
        await writer.append(
            world.at, known, writer.drafts((event(),)), commit_id=ids.commit_id(), folded=(7, 7)
        )


@pytest.mark.integration
async def test_a_commit_outlives_the_death_of_the_server(own_server: Server, at: Address) -> None:
    await provision(own_server.address)
    async with connect(own_server.address, name="test", timeout_s=0.2) as eventlog:
        world = World(eventlog, at)
        writer = world.writer(patience_s=inf)
        await writer.commit(at, world.decide())

        own_server.kill()
        commit = asyncio.create_task(writer.commit(at, world.decide()))
        await asyncio.sleep(0.4)  # One attempt at least has timed out.
        assert not commit.done()
        own_server.start()

        async with asyncio.timeout(40):
            written = await commit
        assert written.after.state == (1, 2)
        assert await world.stored_commits() == 2
