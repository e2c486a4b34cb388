"""What the inbox and a revert do to the rows. BEHAVIOUR section N."""

from typing import TYPE_CHECKING

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection import log_entries, statements
from fairlead_projector.projection.rows import Projected
from fairlead_projector.projection.statements import Changes
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    RevertCommitted,
    RevertStaged,
    SessionCreated,
    StepStarted,
)
from fairlead_schema.events.session import RevertState
from fairlead_schema.location import LocationRef
from fairlead_schema.message import UserMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given

AT = Address("default", "ses_1")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
STARTED = StepStarted(
    assistant_message_id="msg_a", agent="build", model=ModelRef(id="fast", provider_id="acme")
)


def admitted(id_: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text="hello"), delivery="queue")


def promoted(id_: str, text: str = "hello") -> PromptPromoted:
    return PromptPromoted(message_id=id_, prompt=Prompt(text=text), created=2)


def fold(*entries: LogEntry, known: dict[Address, Projected] | None = None) -> Changes:
    sessions = {} if known is None else known
    return statements.fold(sessions, [log_entries.read(entry) for entry in entries])


def test_pending_counts_inputs_neither_promoted_nor_cancelled(given: "Given") -> None:
    changes = fold(
        given.commit(AT, CREATED, admitted("msg_1"), admitted("msg_2"), admitted("msg_3")),
        given.commit(AT, promoted("msg_1"), InputCancelled(message_id="msg_2")),
    )

    assert changes.sessions[AT].pending == 1
    assert changes.inputs[AT, "msg_1"].promoted_seq == 5
    assert changes.inputs[AT, "msg_2"].cancelled


def test_an_input_of_an_earlier_batch_is_changed_not_inserted(given: "Given") -> None:
    known: dict[Address, Projected] = {}
    fold(given.commit(AT, CREATED, admitted("msg_1")), known=known)
    edited = InputEdited(message_id="msg_1", prompt=Prompt(text="better"), delivery="steer")

    changes = fold(given.commit(AT, edited, promoted("msg_1", "better")), known=known)

    change = changes.input_changes[AT, "msg_1"]
    assert changes.inputs == {}
    assert (change.promoted_seq, change.delivery, change.cancelled) == (4, "steer", None)
    assert changes.sessions[AT].pending == 0


def test_a_promotion_becomes_a_user_message_with_its_admission_time(given: "Given") -> None:
    changes = fold(given.commit(AT, CREATED, admitted("msg_1"), promoted("msg_1")))

    message = changes.messages[AT, "msg_1"].message
    assert isinstance(message, UserMessage)
    assert (message.text, message.time.created) == ("hello", 2)


def test_a_committed_revert_cuts_after_its_boundary_and_clears_the_stage(given: "Given") -> None:
    """N-06, N-08, N-09."""
    staged = RevertStaged(revert=RevertState(message_id="msg_1"))
    known: dict[Address, Projected] = {}
    first = fold(
        given.commit(AT, CREATED, admitted("msg_1"), promoted("msg_1"), STARTED),
        given.commit(AT, admitted("msg_2"), staged),
        known=known,
    )
    assert first.sessions[AT].revert == RevertState(message_id="msg_1")

    changes = fold(given.commit(AT, RevertCommitted(message_id="msg_1")), known=known)

    assert changes.truncations == [("default", "ses_1", 3, 7)]
    assert (changes.sessions[AT].revert, changes.sessions[AT].pending) == (None, 0)
    assert list(known[AT].messages) == ["msg_1"]
