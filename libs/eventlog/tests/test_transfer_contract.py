"""What an import needs of the log: its commits, the origins, and the register of message ids."""

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, NotFinalised
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.ports import START, Head
from fairlead_schema.record import (
    LEVEL_NEWEST,
    Commit,
    ImportMark,
    encode,
    record,
)
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, check_checksum
from fairlead_service import ids
from fairlead_testing.events import drafts


def imported_commit(*, after: int = 0, count: int = 2, through: int = 4) -> Commit:
    recorded = record(drafts(count), after=after)
    mark = ImportMark(through)
    return Commit(ids.commit_id(), tuple(each._replace(imported=mark) for each in recorded))


@pytest.fixture
async def finalised(eventlog: EventLog) -> EventLog:
    await eventlog.status.finalise(LEVEL_NEWEST)
    return eventlog


async def test_a_commit_of_an_import_is_stored_once_with_its_checksum(
    finalised: EventLog, at: Address
) -> None:
    commit = imported_commit()

    stored = await finalised.log.restore(at, commit, encode(commit), after=START)
    again = await finalised.log.restore(at, commit, encode(commit), after=START)

    assert stored.head == again.head == Head(stored.position, 2)
    (entry,) = [entry async for entry in finalised.shards.session_entries(at, after=0)]
    assert check_checksum(at, entry.payload) is ChecksumState.VALID
    page = await finalised.log.read(at, after=START)
    assert [each.commit for each in page.commits] == [commit]


async def test_a_commit_of_an_import_follows_the_end_that_its_writer_saw(
    finalised: EventLog, at: Address
) -> None:
    commit, other = imported_commit(), imported_commit()
    await finalised.log.restore(at, commit, encode(commit), after=START)

    with pytest.raises(AppendConflict):
        await finalised.log.restore(at, other, encode(other), after=START)


async def test_an_import_waits_for_its_level(at: Address) -> None:
    """A13: an older release would run the session before it is complete."""
    eventlog, commit = memory_eventlog(), imported_commit()

    with pytest.raises(NotFinalised):
        await eventlog.log.restore(at, commit, encode(commit), after=START)


async def test_the_first_origin_keeps_a_session_until_another_replaces_it(
    eventlog: EventLog, at: Address
) -> None:
    """H-23, H-24"""
    assert await eventlog.origins.find(at) is None
    assert await eventlog.origins.claim(at, "east") == "east"
    assert await eventlog.origins.claim(at, "west") == "east"
    assert await eventlog.origins.claim(at, "west", overwrite=True) == "west"
    assert await eventlog.origins.find(at) == "west"


async def test_a_bound_message_id_is_found(eventlog: EventLog, at: Address) -> None:
    id_ = ids.message_id()
    assert await eventlog.message_ids.find(at.tenant, id_) is None

    await eventlog.message_ids.bind(at.tenant, id_, at.session_id)

    assert await eventlog.message_ids.find(at.tenant, id_) == at.session_id
    assert await eventlog.message_ids.find("other", id_) is None
