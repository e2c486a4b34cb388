"""The effect of inbox events and reverts on the rows. BEHAVIOUR section N."""

from typing import TYPE_CHECKING

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.row_changes import RowChanges
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    SessionCreated,
    StepStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.message import UserMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

AT = Address("default", "ses_1")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
STARTED = StepStarted(
    assistant_message_id="msg_a", agent="build", model=ModelRef(id="fast", provider_id="acme")
)


def admission(id_: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text="hello"), delivery="queue")


def promotion(id_: str, text: str = "hello") -> PromptPromoted:
    return PromptPromoted(message_id=id_, prompt=Prompt(text=text), created=2)


def fold(*entries: LogEntry, sessions: dict[Address, ProjectedSession] | None = None) -> RowChanges:
    sessions = {} if sessions is None else sessions
    return row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in entries])


def test_pending_counts_inputs_neither_promoted_nor_cancelled(log_builder: "LogBuilder") -> None:
    changes = fold(
        log_builder.commit(AT, CREATED, admission("msg_1"), admission("msg_2"), admission("msg_3")),
        log_builder.commit(AT, promotion("msg_1"), InputCancelled(message_id="msg_2")),
    )

    assert changes.sessions[AT].pending == 1
    assert changes.inputs[AT, "msg_1"].promoted_seq == 5
    assert changes.inputs[AT, "msg_2"].cancelled


def test_an_input_of_an_earlier_batch_is_changed_not_inserted(log_builder: "LogBuilder") -> None:
    sessions: dict[Address, ProjectedSession] = {}
    fold(log_builder.commit(AT, CREATED, admission("msg_1")), sessions=sessions)
    edit = InputEdited(message_id="msg_1", prompt=Prompt(text="better"), delivery="steer")

    changes = fold(log_builder.commit(AT, edit, promotion("msg_1", "better")), sessions=sessions)

    change = changes.input_changes[AT, "msg_1"]
    assert changes.inputs == {}
    assert (change.promoted_seq, change.delivery, change.cancelled) == (4, "steer", None)
    assert changes.sessions[AT].pending == 0


def test_a_session_that_was_projected_from_its_first_event_knows_what_the_tables_have(
    log_builder: "LogBuilder",
) -> None:
    """Nothing is looked up that cannot be there, and nothing is copied that is there."""
    sessions: dict[Address, ProjectedSession] = {}
    entry = log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1"), STARTED)
    first = fold(entry, sessions=sessions)
    session = sessions[AT]
    session.forget_closed()

    assert [session.may_have(id_) for id_ in ("msg_1", "msg_a", "msg_2")] == [True, False, False]
    assert first.created_inputs == {(AT, "msg_1")}
    again = fold(log_builder.commit(AT, admission("msg_1"), admission("msg_2")), sessions=sessions)
    assert again.created_inputs == {(AT, "msg_2")}


def test_nobody_knows_what_the_tables_have_of_a_session_that_was_loaded(
    log_builder: "LogBuilder",
) -> None:
    sessions: dict[Address, ProjectedSession] = {}
    fold(log_builder.commit(AT, CREATED), sessions=sessions)
    loaded = sessions[AT] = ProjectedSession(sessions[AT].row)

    changes = fold(log_builder.commit(AT, admission("msg_1")), sessions=sessions)

    assert loaded.may_have("msg_1")
    assert (list(changes.inputs), changes.created_inputs) == ([(AT, "msg_1")], set())


async def test_an_input_or_a_message_that_comes_twice_keeps_its_first_row(
    log_builder: "LogBuilder", projection: "Projection"
) -> None:
    """Only a damaged log has such a pair. It breaks nothing, in one batch and in two."""
    async with projection.run():
        await log_builder.append(AT, CREATED, admission("msg_1"), promotion("msg_1"))
        await projection.wait_until(projection.is_caught_up)
        await log_builder.append(AT, admission("msg_1"), promotion("msg_1", "other"))
        await projection.wait_until(projection.is_caught_up)

    assert projection.rows("SELECT broken FROM projection.session") == [{"broken": None}]
    assert projection.rows("SELECT admitted_seq FROM projection.session_input") == [
        {"admitted_seq": 2}
    ]
    assert projection.rows("SELECT message ->> 'text' AS text FROM projection.session_message") == [
        {"text": "hello"}
    ]


def test_a_promotion_becomes_a_user_message_with_its_admission_time(
    log_builder: "LogBuilder",
) -> None:
    changes = fold(log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1")))

    message = changes.messages[AT, "msg_1"].message
    assert isinstance(message, UserMessage)
    assert (message.text, message.time.created) == ("hello", 2)


def test_a_committed_revert_cuts_after_its_boundary_and_clears_the_stage(
    log_builder: "LogBuilder",
) -> None:
    """N-06, N-08, N-09."""
    stage = RevertStaged(revert=RevertState(message_id="msg_1"))
    sessions: dict[Address, ProjectedSession] = {}
    first = fold(
        log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1"), STARTED),
        log_builder.commit(AT, admission("msg_2"), stage),
        sessions=sessions,
    )
    assert first.sessions[AT].revert == RevertState(message_id="msg_1")

    changes = fold(log_builder.commit(AT, RevertCommitted(message_id="msg_1")), sessions=sessions)

    assert changes.truncations == [("default", "ses_1", 3, 7, None)]
    assert (changes.sessions[AT].revert, changes.sessions[AT].pending) == (None, 0)
    assert list(sessions[AT].messages) == ["msg_1"]


def test_a_revert_before_a_message_cuts_that_message_too(log_builder: "LogBuilder") -> None:
    sessions: dict[Address, ProjectedSession] = {}
    fold(
        log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1"), STARTED),
        sessions=sessions,
    )

    committed = RevertCommitted(message_id="msg_1", withdrawn=(), before=True)
    changes = fold(log_builder.commit(AT, committed), sessions=sessions)

    assert changes.truncations == [("default", "ses_1", 2, 5, [])]
    assert sessions[AT].messages == {}


def test_an_input_after_the_stage_survives_the_commit(log_builder: "LogBuilder") -> None:
    """N-08, N-10: only the inputs that the commit names leave the inbox."""
    stage = RevertStaged(revert=RevertState(message_id="msg_1"))
    sessions: dict[Address, ProjectedSession] = {}
    fold(
        log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1"), STARTED),
        log_builder.commit(AT, admission("msg_2"), stage, admission("msg_3")),
        sessions=sessions,
    )

    committed = RevertCommitted(message_id="msg_1", withdrawn=("msg_2",))
    changes = fold(log_builder.commit(AT, committed), sessions=sessions)

    assert changes.truncations == [("default", "ses_1", 3, 8, ["msg_2"])]
    assert list(sessions[AT].pending) == ["msg_3"]
    assert changes.sessions[AT].pending == 1


def test_a_requested_revert_moves_the_session_until_it_ends(log_builder: "LogBuilder") -> None:
    """The sweep finds a request that nobody serves, as it finds a compaction."""
    sessions: dict[Address, ProjectedSession] = {}
    requested = RevertRequested(action="stage", message_id="msg_1")
    fold(log_builder.commit(AT, CREATED, requested), sessions=sessions)
    row = sessions[AT].row
    assert (row.owed, row.work_requested) == (True, True)

    fold(log_builder.commit(AT, RevertFailed(reason="no git")), sessions=sessions)

    row = sessions[AT].row
    assert (row.owed, row.work_requested) == (False, False)
