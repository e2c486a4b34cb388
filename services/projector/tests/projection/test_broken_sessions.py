"""An unreadable commit stops its own session and no other, and the row shows the reason."""

from typing import TYPE_CHECKING

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.events import AgentSwitched, SessionArchived, SessionCreated
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
OTHER = Address("default", "ses_2")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
FUTURE = (
    b'{"id":"cmt_9","events":[{"id":"evt_9","seq":2,"type":"session.flown","version":1,'
    b'"time":1,"data":{}}]}'
)


def test_an_unknown_event_breaks_its_session_with_a_reason(log_builder: "LogBuilder") -> None:
    entries = [
        log_builder.commit(AT, CREATED),
        log_builder.raw(AT, FUTURE),
        log_builder.commit(OTHER, CREATED),
    ]

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry) for entry in entries])

    assert "session.flown" in (changes.sessions[AT].broken or "")
    assert changes.sessions[OTHER].broken is None
    assert [broken_entry.entry for broken_entry in changes.broken] == [entries[1]]


def test_a_broken_session_is_projected_no_further(log_builder: "LogBuilder") -> None:
    sessions: dict[Address, ProjectedSession] = {}
    entries = [log_builder.commit(AT, CREATED), log_builder.raw(AT, FUTURE)]
    row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in entries])

    later = [log_builder.commit(AT, SessionArchived()), log_builder.raw(AT, b"not json")]
    changes = row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in later])

    assert (changes.events, changes.sessions, changes.broken) == ([], {}, [])


def test_a_session_whose_first_commit_is_unreadable_still_has_a_row(
    log_builder: "LogBuilder",
) -> None:
    changes = row_changes.fold_batch({}, [log_entries.decode_entry(log_builder.raw(AT, b"\xff"))])

    row = changes.sessions[AT]
    assert row.seq == 1
    assert (row.broken or "").startswith("malformed commit")


def test_a_log_that_does_not_begin_with_its_creation_is_broken(log_builder: "LogBuilder") -> None:
    entry = log_builder.commit(AT, AgentSwitched(message_id="msg_1", agent="plan"))

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    assert "session.created" in (changes.sessions[AT].broken or "")


def test_a_gap_in_the_sequence_is_broken(log_builder: "LogBuilder") -> None:
    first = log_builder.commit(AT, CREATED)
    log_builder.payload(AT, SessionArchived())

    third = log_builder.commit(AT, SessionArchived())
    changes = row_changes.fold_batch(
        {}, [log_entries.decode_entry(first), log_entries.decode_entry(third)]
    )

    assert changes.sessions[AT].broken == "expected event 2, found 3"
    assert changes.sessions[AT].seq == 1


def test_a_nul_character_is_shown_by_its_symbol(log_builder: "LogBuilder") -> None:
    entry = log_builder.commit(AT, CREATED.model_copy(update={"title": "a\0b"}))

    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    assert changes.sessions[AT].title == "a␀b"
    assert b"u0000" not in changes.events[0].data
