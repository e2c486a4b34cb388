"""What every log promises, judged on the twin and on JetStream alike."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, CommitTooLarge
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_schema.events import SessionPurged
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.commits import read_all
from fairlead_testing.events import drafts


async def write_commits(eventlog: EventLog, at: Address, sizes: list[int]) -> list[StoredCommit]:
    head, stored = START, []
    for size in sizes:
        commit = await eventlog.log.append(at, ids.commit_id(), drafts(size), after=head)
        head = commit.head
        stored.append(commit)
    return stored


async def take_commits(tail: AsyncIterator[StoredCommit], count: int) -> list[StoredCommit]:
    commits: list[StoredCommit] = []
    async with asyncio.timeout(20):
        async for stored in tail:
            commits.append(stored)
            if len(commits) == count:
                break
    return commits


async def test_a_session_that_was_never_written_stands_at_the_start(
    eventlog: EventLog, at: Address
) -> None:
    assert await eventlog.log.head(at) == START
    assert await eventlog.log.read(at, after=START) == ((), False)


async def test_sequences_are_contiguous_from_one_over_all_commits(
    eventlog: EventLog, at: Address
) -> None:
    """H-01, H-02: contiguous per session, whatever else the shard holds."""
    await write_commits(eventlog, Address("default", ids.session_id()), [1])

    await write_commits(eventlog, at, [2, 1, 3])

    commits = await read_all(eventlog.log, at)
    assert [event.seq for stored in commits for event in stored.commit.events] == [*range(1, 7)]
    assert (await eventlog.log.head(at)).seq == 6


async def test_the_log_keeps_the_caller_of_a_commit(eventlog: EventLog, at: Address) -> None:
    stored = await eventlog.log.append(at, ids.commit_id(), drafts(1), after=START, by="key:ci")

    commits = await read_all(eventlog.log, at)
    assert commits == (stored,)
    assert commits[0].commit.by == "key:ci"


async def test_a_stale_append_is_a_conflict_and_writes_nothing(
    eventlog: EventLog, at: Address
) -> None:
    first, second = await write_commits(eventlog, at, [1, 1])

    with pytest.raises(AppendConflict):
        await eventlog.log.append(at, ids.commit_id(), drafts(), after=first.head)

    assert await eventlog.log.head(at) == second.head


async def test_of_racing_writers_exactly_one_wins_each_place(
    eventlog: EventLog, at: Address
) -> None:
    async def race() -> bool:
        try:
            await eventlog.log.append(at, ids.commit_id(), drafts(), after=START)
        except AppendConflict:
            return False
        return True

    outcomes = await asyncio.gather(*(race() for _ in range(8)))

    assert outcomes.count(True) == 1
    assert (await eventlog.log.head(at)).seq == 1


async def test_a_repeated_commit_is_answered_with_what_it_stored(
    eventlog: EventLog, at: Address
) -> None:
    """A writer whose acknowledgement was lost repeats the same commit and learns that it won."""
    commit_id, events = ids.commit_id(), drafts(2)
    stored = await eventlog.log.append(at, commit_id, events, after=START)
    await eventlog.log.append(at, ids.commit_id(), drafts(), after=stored.head)

    again = await eventlog.log.append(at, commit_id, events, after=START)

    assert again == stored
    assert (await eventlog.log.head(at)).seq == 3


async def test_a_commit_that_does_not_fit_is_refused_whole(eventlog: EventLog, at: Address) -> None:
    huge = drafts(1, text="x" * (9 * 1024 * 1024))

    with pytest.raises(CommitTooLarge):
        await eventlog.log.append(at, ids.commit_id(), huge, after=START)

    assert await eventlog.log.head(at) == START


async def test_reading_goes_on_in_pages_from_any_head(eventlog: EventLog, at: Address) -> None:
    """H-35: decided otherwise: history is read in pages."""
    stored = await write_commits(eventlog, at, [1] * 7)

    assert await read_all(eventlog.log, at) == tuple(stored)
    first = await eventlog.log.read(at, after=START, limit=3, reach=stored[-1].position)
    rest = await read_all(eventlog.log, at, after=first.commits[-1].head)

    assert first.more
    assert [*first.commits, *rest] == stored


async def test_locating_a_sequence_leads_to_the_event_after_it(
    eventlog: EventLog, at: Address
) -> None:
    await write_commits(eventlog, at, [3] * 40)

    for seq in (0, 1, 3, 59, 118, 119, 120, 500):
        head = await eventlog.log.locate(at, seq)
        commits = await read_all(eventlog.log, at, after=head)
        after = [event.seq for stored in commits for event in stored.commit.events]
        assert head.seq <= seq
        assert [later for later in after if later > seq][:1] == ([seq + 1] if seq < 120 else [])


async def test_locating_far_into_a_long_session_skips_most_of_it(
    eventlog: EventLog, at: Address
) -> None:
    await write_commits(eventlog, at, [10] * 150)

    head = await eventlog.log.locate(at, 1400)

    assert 800 <= head.seq <= 1400


async def test_a_tail_replays_then_follows_without_gap_or_duplicate(
    eventlog: EventLog, at: Address
) -> None:
    """H-30, H-31: what lands while history is read is neither lost nor repeated."""
    stored = await write_commits(eventlog, at, [1] * 5)
    tail = eventlog.log.tail(at, after=2)
    head = stored[-1].head

    async def keep_writing() -> None:
        nonlocal head
        for _ in range(30):
            commit = await eventlog.log.append(at, ids.commit_id(), drafts(), after=head)
            head = commit.head

    writing = asyncio.create_task(keep_writing())
    commits = await take_commits(tail, 33)
    await writing

    assert [item.head.seq for item in commits] == [*range(3, 36)]


async def test_a_tail_may_begin_before_the_session_exists(eventlog: EventLog, at: Address) -> None:
    reading = asyncio.create_task(take_commits(eventlog.log.tail(at, after=0), 2))
    await asyncio.sleep(0.05)

    await write_commits(eventlog, at, [1, 1])

    assert [item.head.seq for item in await reading] == [1, 2]


async def test_tails_of_one_session_hear_nothing_of_another(
    eventlog: EventLog, at: Address
) -> None:
    reading = asyncio.create_task(take_commits(eventlog.log.tail(at, after=0), 1))
    await asyncio.sleep(0.05)

    await write_commits(eventlog, Address("default", ids.session_id()), [1, 1])
    mine = await write_commits(eventlog, at, [1])

    assert await reading == mine


async def test_an_erased_session_starts_again(eventlog: EventLog, at: Address) -> None:
    """H-29."""
    await write_commits(eventlog, at, [1, 1])

    await eventlog.log.erase(at)

    assert await eventlog.log.head(at) == START


async def purge_session(eventlog: EventLog, at: Address, sizes: list[int]) -> StoredCommit:
    """A session that was written and then purged."""
    *_, last = await write_commits(eventlog, at, sizes)
    gone = (Draft(ids.event_id(), 1, SessionPurged()),)
    return await eventlog.log.append(at, ids.commit_id(), gone, after=last.head)


async def test_a_purged_session_does_not_exist(eventlog: EventLog, at: Address) -> None:
    """H-29: its last word stays, for readers of the whole log alone."""
    last = await purge_session(eventlog, at, [1, 1])

    assert await eventlog.log.head(at) == START
    assert await eventlog.log.last_commit_position(at) == last.position
    assert (await read_all(eventlog.log, at))[-1] == last


async def test_what_came_before_a_purge_can_be_erased_for_ever(
    eventlog: EventLog, at: Address
) -> None:
    """H-29: erasing is repeatable, and leaves the last word and the neighbours alone."""
    neighbour = Address(at.tenant, ids.session_id())
    near = await write_commits(eventlog, neighbour, [2])
    last = await purge_session(eventlog, at, [1, 3])

    for _ in range(2):
        await eventlog.log.erase(at, before=last.position)

    async with asyncio.timeout(20):
        while await read_all(eventlog.log, at) != (last,):
            await asyncio.sleep(0.02)  # A replica erases a little later than the leader.
    assert await read_all(eventlog.log, neighbour) == tuple(near)
    assert await take_commits(eventlog.log.tail(at, after=0), 1) == [last]


async def test_a_writer_who_missed_the_purge_writes_nothing(
    eventlog: EventLog, at: Address
) -> None:
    """H-29: neither an old owner nor a new creator can write under the id."""
    before = (await write_commits(eventlog, at, [1]))[0]
    gone = (Draft(ids.event_id(), 1, SessionPurged()),)
    last = await eventlog.log.append(at, ids.commit_id(), gone, after=before.head)
    await eventlog.log.erase(at, before=last.position)

    for head in (before.head, START):
        with pytest.raises(AppendConflict):
            await eventlog.log.append(at, ids.commit_id(), drafts(), after=head)


async def test_one_tenant_never_reads_another(eventlog: EventLog, at: Address) -> None:
    await write_commits(eventlog, at, [1])

    assert await eventlog.log.head(Address("other", at.session_id)) == START


async def test_a_head_names_its_position_and_its_sequence(eventlog: EventLog, at: Address) -> None:
    stored: Any = (await write_commits(eventlog, at, [4]))[0]

    assert stored.head == Head(stored.position, 4)
