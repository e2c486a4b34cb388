"""Session history: what the next turn sees, after the compaction and epoch cutoffs."""

from libs.session.tests.conftest import CREATED, INITIALISED, given, promoted, then

from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    CompactionRequested,
    CompactionStarted,
    ContextReplaced,
    ContextUpdated,
    SessionEvent,
)
from fairlead_session.turn.history import history

COMPACTED = CompactionEnded(message_id="msg_c", reason="auto", text="summary", recent="tail")
REPLACED = ContextReplaced(baseline=(), snapshot={}, reason="compaction")


def update(id_: str) -> ContextUpdated:
    return ContextUpdated(message_id=id_, text=f"news {id_}")


def texts(*events: SessionEvent) -> list[str]:
    return [message.id for message in history(given(CREATED, *events))]


def test_without_cutoffs_everything_is_history_in_sequence_order() -> None:
    """I-02, I-30: switches included; ids and times do not order."""
    switched = AgentSwitched(message_id="msg_0", agent="plan")

    assert texts(promoted("msg_9", created=9), promoted("msg_1", created=1), switched) == [
        "msg_9",
        "msg_1",
        "msg_0",
    ]


def test_history_starts_at_the_newest_compaction() -> None:
    """I-29: what the summary replaced is no longer seen."""
    newer = COMPACTED.model_copy(update={"message_id": "msg_d"})

    assert texts(promoted("msg_1"), COMPACTED, promoted("msg_2")) == ["msg_c", "msg_2"]
    assert texts(promoted("msg_1"), COMPACTED, promoted("msg_2"), newer) == ["msg_d"]


def test_a_compaction_that_never_ended_changes_nothing() -> None:
    """I-29: a start without an end is no cutoff."""
    started = CompactionStarted(message_id="msg_c", reason="auto")

    assert texts(promoted("msg_1"), CompactionRequested(), started) == ["msg_1"]


def test_system_messages_are_seen_only_after_their_epoch_began() -> None:
    """I-29, F-40: a replacement hides every earlier system message and nothing else."""
    before = (INITIALISED, promoted("msg_1"), update("msg_s1"))

    assert texts(*before) == ["msg_1", "msg_s1"]
    assert texts(*before, REPLACED, update("msg_s2")) == ["msg_1", "msg_s2"]


def test_without_an_epoch_every_system_message_is_seen() -> None:
    """I-29: nothing is hidden by an epoch that does not exist."""
    assert texts(update("msg_s1"), promoted("msg_1")) == ["msg_s1", "msg_1"]


def test_updates_of_the_epoch_in_force_survive_a_compaction_until_it_is_replaced() -> None:
    """F-38, F-39: the old baseline needs its updates; a fresh one does not."""
    before = (INITIALISED, promoted("msg_1"), update("msg_s1"), COMPACTED, promoted("msg_2"))

    assert texts(*before) == ["msg_s1", "msg_c", "msg_2"]
    assert texts(*before, REPLACED) == ["msg_c", "msg_2"]


def test_the_working_state_forgets_what_a_compaction_replaced() -> None:
    """I-29: folded state stays bounded, and its ids stay taken."""
    session = given(CREATED, INITIALISED, promoted("msg_1"), CompactionRequested())

    compacted = then(session, COMPACTED)

    assert [line.message.id for line in compacted.transcript.lines] == ["msg_c"]
    assert "msg_1" in compacted.inbox.admissions
    assert (session.execution.compaction_requested, compacted.execution.compaction_requested) == (
        True,
        False,
    )
