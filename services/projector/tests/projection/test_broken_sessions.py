"""A commit that cannot be read stops its own session, visibly, and nothing else."""

from typing import TYPE_CHECKING

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.events import AgentSwitched, SessionArchived, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given

AT = Address("default", "ses_1")
OTHER = Address("default", "ses_2")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
FUTURE = (
    b'{"id":"cmt_9","events":[{"id":"evt_9","seq":2,"type":"session.flown","version":1,'
    b'"time":1,"data":{}}]}'
)


def test_an_unknown_event_breaks_its_session_with_a_reason(given: "Given") -> None:
    entries = [given.commit(AT, CREATED), given.raw(AT, FUTURE), given.commit(OTHER, CREATED)]

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry) for entry in entries])

    assert "session.flown" in (changes.sessions[AT].broken or "")
    assert changes.sessions[OTHER].broken is None
    assert [broken.entry for broken in changes.broken] == [entries[1]]


def test_a_broken_session_is_projected_no_further(given: "Given") -> None:
    sessions: dict[Address, ProjectedSession] = {}
    entries = [given.commit(AT, CREATED), given.raw(AT, FUTURE)]
    row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in entries])

    later = [given.commit(AT, SessionArchived()), given.raw(AT, b"not json")]
    changes = row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in later])

    assert (changes.events, changes.sessions, changes.broken) == ([], {}, [])


def test_a_session_whose_first_commit_is_unreadable_still_has_a_row(given: "Given") -> None:
    changes = row_changes.fold_batch({}, [log_entries.decode_entry(given.raw(AT, b"\xff"))])

    row = changes.sessions[AT]
    assert row.seq == 1
    assert (row.broken or "").startswith("malformed commit")


def test_a_log_that_does_not_begin_with_its_creation_is_broken(given: "Given") -> None:
    entry = given.commit(AT, AgentSwitched(message_id="msg_1", agent="plan"))

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    assert "session.created" in (changes.sessions[AT].broken or "")


def test_a_gap_in_the_sequence_is_broken(given: "Given") -> None:
    first = given.commit(AT, CREATED)
    given.payload(AT, SessionArchived())

    third = given.commit(AT, SessionArchived())
    changes = row_changes.fold_batch(
        {}, [log_entries.decode_entry(first), log_entries.decode_entry(third)]
    )

    assert changes.sessions[AT].broken == "expected event 2, found 3"
    assert changes.sessions[AT].seq == 1


def test_a_nul_character_is_shown_by_its_symbol(given: "Given") -> None:
    entry = given.commit(AT, CREATED.model_copy(update={"title": "a\0b"}))

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    assert changes.sessions[AT].title == "a␀b"
    assert b"u0000" not in changes.events[0].data
