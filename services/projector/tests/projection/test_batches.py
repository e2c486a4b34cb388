"""A batch is bounded by its commits and by its bytes; what Postgres refuses stops one session only."""

from typing import TYPE_CHECKING

import pytest
from psycopg import errors

from fairlead_eventlog.ports import LogEntry
from fairlead_projector import database, metrics
from fairlead_projector.migrations import migrate
from fairlead_projector.projection import store
from fairlead_projector.projection.batches import is_refused, join_pages, split_entries
from fairlead_projector.projection.recent_sessions import (
    ID_BYTES,
    SESSION_BYTES,
    CacheLimits,
    RecentSessions,
)
from fairlead_projector.projection.rows import ProjectedSession, SessionIds
from fairlead_projector.projection.session_row import unreadable_row
from fairlead_projector.projection.shard import ReadOptions
from fairlead_schema.events import (
    PromptAdmitted,
    SessionArchived,
    SessionMoved,
    StepStarted,
    TextEnded,
    TextStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from services.projector.tests.projection.test_shard import AT, CREATED, NEIGHBOUR, SHARD
from services.projector.tests.test_sweep_budgets import STARTED

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

MEGABYTE = 1024 * 1024


def entries(*sizes: int) -> list[LogEntry]:
    return [LogEntry(n, AT, b"x" * size) for n, size in enumerate(sizes, start=1)]


def sizes(batches: list[list[LogEntry]]) -> list[list[int]]:
    return [[len(entry.payload) for entry in batch] for batch in batches]


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        ((), []),
        ((1, 1, 1), [[1, 1], [1]]),
        ((6, 4, 1), [[6, 4], [1]]),
        ((6, 5), [[6], [5]]),
        ((1, 99, 1), [[1], [99], [1]]),
    ],
)
def test_a_batch_has_a_bounded_number_of_commits_and_bytes(
    given: tuple[int, ...], batches: list[list[int]]
) -> None:
    """A16: a larger commit is a batch by itself."""
    split = split_entries(entries(*given), commits_max=2, bytes_max=10)

    assert sizes([list(batch) for batch in split]) == batches


def test_the_rows_of_a_statement_are_bounded_by_bytes() -> None:
    rows = [b"1", b"22", b"333333", b"4"]

    assert list(join_pages(rows, bytes_max=5)) == [b"[1,22]", b"[333333]", b"[4]"]
    assert list(join_pages([], bytes_max=5)) == []


def test_recent_sessions_are_bounded_by_bytes() -> None:
    """A16: a cache of 2,000 sessions held the newest message of each, however large."""
    recent = RecentSessions(CacheLimits(3, 3 * SESSION_BYTES + 100))
    places = [Address("default", f"ses_{number}") for number in range(5)]
    for at in places[:4]:
        recent.put(at, ProjectedSession(unreadable_row(at, 1)))
    assert list(recent.find(places)) == places[1:4]

    recent.put(places[3], ProjectedSession(unreadable_row(places[3], 1), message_bytes=101))
    assert list(recent.find(places)) == [places[2], places[3]]

    ids = SessionIds({"msg_1"}, {"msg_1", "msg_2"})
    recent.put(places[4], ProjectedSession(unreadable_row(places[4], 1), ids=ids))
    assert list(recent.find(places)) == [places[3], places[4]]
    recent.drop(places[3])
    assert recent.bytes == SESSION_BYTES + 3 * ID_BYTES

    recent.put(places[4], ProjectedSession(unreadable_row(places[4], 1), message_bytes=10**9))
    assert (recent.find(places), recent.bytes) == ({}, 0)


def test_only_a_refusal_of_the_content_stops_a_session() -> None:
    """A16: a server that is away or out of memory says nothing about one commit."""
    assert is_refused(errors.ProgramLimitExceeded("jsonb too large"), alone=True)
    assert is_refused(errors.InternalError_("invalid memory alloc request size 1073"), alone=True)
    assert is_refused(errors.OutOfMemory("out of memory"), alone=False)
    assert not is_refused(errors.OutOfMemory("out of memory"), alone=True)
    assert not is_refused(errors.AdminShutdown("terminating connection"), alone=False)


@pytest.mark.integration
async def test_large_commits_are_projected_in_small_transactions(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """A16: ten commits of three megabytes come in transactions of at most eight."""
    log_builder.commit(AT, CREATED)
    for number in range(10):
        prompt = Prompt(text=f"{number:02}" * (3 * MEGABYTE // 2))
        log_builder.commit(
            AT, PromptAdmitted(message_id=f"msg_{number:02}", prompt=prompt, delivery="queue")
        )
    log_builder.commit(NEIGHBOUR, CREATED)
    before = metrics.BATCH._sum.get()  # noqa: SLF001 - the client library has no other way
    options = ReadOptions(500, bytes_max=8 * MEGABYTE)
    async with projection.run(options=options):
        await projection.wait_until(projection.is_caught_up)
        await projection.wait_until(lambda: metrics.BATCH._sum.get() - before == 12)  # noqa: SLF001

    batches = split_entries(
        log_builder.log.entries[SHARD], commits_max=500, bytes_max=options.bytes_max
    )
    assert max(len(batch) for batch in batches) == 3
    lengths = projection.rows("SELECT DISTINCT length(prompt ->> 'text') FROM read.session_input")
    assert [row["length"] for row in lengths] == [3 * MEGABYTE]
    assert len(projection.rows("SELECT 1 FROM read.session WHERE broken IS NULL")) == 2


@pytest.mark.integration
async def test_a_message_that_grows_by_megabytes_is_written_each_time(
    log_builder: "LogBuilder", projection: "Projection", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A16: the message is larger than a parameter of a statement, and too large for a batch."""
    monkeypatch.setattr(store, "PARAMETER_BYTES_MAX", MEGABYTE // 2)
    log_builder.commit(AT, CREATED, STARTED)
    assert isinstance(STARTED, StepStarted)
    for number in range(8):
        text_id, message_id = f"txt_{number}", STARTED.assistant_message_id
        log_builder.commit(
            AT,
            TextStarted(assistant_message_id=message_id, text_id=text_id),
            TextEnded(assistant_message_id=message_id, text_id=text_id, text="z" * (MEGABYTE // 4)),
        )
    async with projection.run(options=ReadOptions(500, bytes_max=MEGABYTE // 2)):
        await projection.wait_until(projection.is_caught_up)

    (row,) = projection.rows("SELECT length(message::text) AS length FROM read.session_message")
    assert row["length"] > 2 * MEGABYTE


@pytest.mark.integration
async def test_what_is_too_large_for_postgres_stops_only_its_session(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """A16: the error counted as an outage of Postgres, and the shard tried the batch for ever."""
    log_builder.commit(AT, CREATED)
    log_builder.commit(NEIGHBOUR, CREATED)
    long_path = "".join(chr(0x4E00 + number) for number in range(3000))
    location = LocationRef(directory="/w")
    log_builder.commit(AT, SessionMoved(location=location, subdirectory=long_path))
    for _number in range(20):
        log_builder.commit(NEIGHBOUR, SessionArchived())
    async with await database.connect(projection.dsn) as connection:
        await migrate(connection)
        await connection.execute("CREATE INDEX ON projection.session (subpath)")
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)

    rows = projection.rows("SELECT session_id, seq, broken FROM read.session")
    sessions = {row["session_id"]: row for row in rows}
    assert "index row" in sessions[AT.session_id]["broken"]
    assert sessions[NEIGHBOUR.session_id]["seq"] == 21
