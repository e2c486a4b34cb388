"""The effect of a batch of commits on the rows. BEHAVIOUR sections I, N."""

import json
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.ports import LogEntry
from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.row_changes import MESSAGE_EVENTS, RowChanges
from fairlead_projector.projection.rows import ProjectedSession
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    MANIFEST,
    AgentSwitched,
    InputCancelled,
    ModelSwitched,
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SessionMoved,
    ShellEnded,
    ShellRequested,
    ShellStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.message import AssistantMessage, ShellMessage
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
MODEL = ModelRef(id="fast", provider_id="acme")
CREATED = SessionCreated(
    title="New session", project_id="prj", location=LocationRef(directory="/w"), agent="build"
)


def admission(id_: str, text: str = "hello") -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text=text), delivery="queue")


def promotion(id_: str, text: str = "hello") -> PromptPromoted:
    return PromptPromoted(message_id=id_, prompt=Prompt(text=text), created=2)


def step_start(id_: str) -> StepStarted:
    return StepStarted(assistant_message_id=id_, agent="build", model=MODEL)


def step_end(id_: str) -> StepEnded:
    tokens = Tokens(input=10, output=2)
    return StepEnded(assistant_message_id=id_, finish="stop", cost=0.5, tokens=tokens)


def fold(*entries: LogEntry, sessions: dict[Address, ProjectedSession] | None = None) -> RowChanges:
    sessions = {} if sessions is None else sessions
    return row_changes.fold_batch(sessions, [log_entries.decode_entry(entry) for entry in entries])


def test_every_event_is_kept_private_ones_included(log_builder: "LogBuilder") -> None:
    entry = log_builder.commit(AT, CREATED, admission("msg_1"))

    changes = fold(entry)

    logged_events = json.loads(entry.payload)["events"]
    assert [json.loads(row.data) for row in changes.events] == [
        event["data"] for event in logged_events
    ]
    assert [(row.seq, row.type) for row in changes.events] == [
        (1, "session.created"),
        (2, "prompt.admitted"),
    ]


def test_a_session_row_begins_with_what_its_creation_says(log_builder: "LogBuilder") -> None:
    row = fold(log_builder.commit(AT, CREATED, time=77)).sessions[AT]

    assert (row.title, row.project_id, row.directory, row.agent) == (
        "New session",
        "prj",
        "/w",
        "build",
    )
    assert (row.seq, row.position, row.created_at, row.updated_at) == (1, 1, 77, 77)


def test_steps_add_up_cost_and_tokens_and_touch_the_session(log_builder: "LogBuilder") -> None:
    """The totals are decided differently from I-18."""
    changes = fold(
        log_builder.commit(AT, CREATED),
        log_builder.commit(AT, step_start("msg_a"), step_end("msg_a")),
        log_builder.commit(AT, step_start("msg_b"), step_end("msg_b"), time=99),
    )

    row = changes.sessions[AT]
    assert (row.cost, row.tokens, row.updated_at) == (1.0, Tokens(input=20, output=4), 99)


def test_prompts_do_not_touch_the_session_time(log_builder: "LogBuilder") -> None:
    """I-19."""
    row = fold(
        log_builder.commit(AT, CREATED), log_builder.commit(AT, admission("msg_1"), time=9)
    ).sessions[AT]

    assert row.updated_at == 1


def test_switches_change_the_row_and_add_a_message(log_builder: "LogBuilder") -> None:
    """I-04."""
    changes = fold(
        log_builder.commit(AT, CREATED),
        log_builder.commit(AT, AgentSwitched(message_id="msg_1", agent="plan")),
        log_builder.commit(AT, ModelSwitched(message_id="msg_2", model=MODEL)),
    )

    row = changes.sessions[AT]
    assert (row.agent, row.model, row.updated_at) == ("plan", MODEL, 3)
    assert [row.message.type for row in changes.messages.values()] == [
        "agent-switched",
        "model-switched",
    ]


def test_a_move_and_an_archive_change_the_row(log_builder: "LogBuilder") -> None:
    move = SessionMoved(location=LocationRef(directory="/v"), subdirectory="sub")

    row = fold(log_builder.commit(AT, CREATED, move, SessionArchived())).sessions[AT]

    assert (row.directory, row.subpath, row.archived_at) == ("/v", "sub", 3)


def test_a_message_keeps_the_sequence_of_its_creating_event(log_builder: "LogBuilder") -> None:
    """I-01, I-02."""
    changes = fold(
        log_builder.commit(AT, CREATED, step_start("msg_z")),
        log_builder.commit(AT, TextStarted(assistant_message_id="msg_z", text_id="t")),
        log_builder.commit(AT, TextEnded(assistant_message_id="msg_z", text_id="t", text="hi")),
        log_builder.commit(AT, AgentSwitched(message_id="msg_a", agent="plan")),
    )

    assert [(row.message.id, row.seq) for row in changes.messages.values()] == [
        ("msg_z", 2),
        ("msg_a", 5),
    ]


def test_a_second_creator_of_a_message_id_leaves_the_first_row(log_builder: "LogBuilder") -> None:
    """I-03."""
    changes = fold(
        log_builder.commit(AT, CREATED, admission("msg_1"), promotion("msg_1", "first")),
        log_builder.commit(AT, AgentSwitched(message_id="msg_1", agent="plan")),
    )

    seq, message = changes.messages[AT, "msg_1"]
    assert (seq, message.type) == (3, "user")


def test_a_shell_message_is_completed_by_its_end(log_builder: "LogBuilder") -> None:
    """I-07."""
    changes = fold(
        log_builder.commit(AT, CREATED),
        log_builder.commit(AT, ShellStarted(message_id="msg_s", call_id="c", command="ls")),
        log_builder.commit(AT, ShellEnded(message_id="msg_s", call_id="c", output="a\n")),
    )

    message = changes.messages[AT, "msg_s"].message
    assert isinstance(message, ShellMessage)
    assert (message.output, message.time.completed) == ("a\n", 3)


def test_a_new_step_closes_the_open_assistant(log_builder: "LogBuilder") -> None:
    """I-08."""
    changes = fold(log_builder.commit(AT, CREATED, step_start("msg_a"), step_start("msg_b")))

    first, second = (row.message for row in changes.messages.values())
    assert isinstance(first, AssistantMessage)
    assert isinstance(second, AssistantMessage)
    assert (first.time.completed, second.time.completed) == (3, None)


def test_a_completed_assistant_still_takes_its_own_events(log_builder: "LogBuilder") -> None:
    """I-09."""
    changes = fold(
        log_builder.commit(
            AT, CREATED, step_start("msg_a"), step_end("msg_a"), step_start("msg_b")
        ),
        log_builder.commit(AT, TextStarted(assistant_message_id="msg_a", text_id="t")),
    )

    message = changes.messages[AT, "msg_a"].message
    assert isinstance(message, AssistantMessage)
    assert len(message.content) == 1


def test_events_for_a_missing_assistant_change_no_message(log_builder: "LogBuilder") -> None:
    """I-10."""
    changes = fold(
        log_builder.commit(
            AT, CREATED, TextEnded(assistant_message_id="msg_x", text_id="t", text="hi")
        )
    )

    assert changes.messages == {}
    assert len(changes.events) == 2


def test_a_failed_step_keeps_its_content(log_builder: "LogBuilder") -> None:
    """I-16."""
    failure = StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="no"))
    text = TextStarted(assistant_message_id="msg_a", text_id="t")

    changes = fold(log_builder.commit(AT, CREATED, step_start("msg_a"), text, failure))

    message = changes.messages[AT, "msg_a"].message
    assert isinstance(message, AssistantMessage)
    assert (message.finish, message.time.completed, len(message.content)) == ("error", 4, 1)


@pytest.mark.parametrize(
    ("title", "becomes"),
    [("Mine", "Mine"), ("New session - 2026-11-18T02:03:04.005Z", "Fix the parser")],
)
def test_the_first_prompt_names_a_session_that_nobody_named(
    log_builder: "LogBuilder", title: str, becomes: str
) -> None:
    """I-20, P-28: at its promotion, as in the fold of the core."""
    created = CREATED.model_copy(update={"title": title})

    changes = fold(
        log_builder.commit(AT, created, admission("msg_1"), promotion("msg_1", "Fix the parser")),
        log_builder.commit(AT, admission("msg_2"), promotion("msg_2", "Faster")),
    )

    assert changes.sessions[AT].title == becomes


def test_every_event_that_makes_a_message_is_transcribed() -> None:
    silent = {
        kind
        for kind in MANIFEST
        if not {"message_id", "assistant_message_id"} & set(kind.model_fields)
    }

    assert not silent & MESSAGE_EVENTS
    assert {kind.type for kind in MANIFEST if kind not in silent | MESSAGE_EVENTS} == {
        "attempt.dispatched",
        "attempt.finished",
        "compaction.failed",
        "compaction.started",
        "compaction.used",
        "input.cancelled",
        "input.edited",
        "prompt.admitted",
        "revert.committed",
        "revert.requested",
        "shell.requested",
        "tool.deferred",
        "tool.started",
    }


def test_a_replay_rebuilds_what_is_pending_and_asks_nobody_to_work(
    log_builder: "LogBuilder",
) -> None:
    """A-28: the rows depend on the log alone; input without a resume requests no work."""
    admission_only = PromptAdmitted(
        message_id="msg_1", prompt=Prompt(text="hi"), delivery="queue", resume=False
    )
    batch = [
        log_entries.decode_entry(log_builder.commit(AT, CREATED)),
        log_entries.decode_entry(log_builder.commit(AT, admission_only)),
    ]

    first, again = row_changes.fold_batch({}, batch), row_changes.fold_batch({}, batch)

    assert first == again
    row = again.sessions[AT]
    assert (row.pending, row.work_requested, row.owed, row.owner) == (1, False, False, None)
    assert [input_row.promoted_seq for input_row in again.inputs.values()] == [None]


def test_commands_of_people_count_as_pending_until_they_end(log_builder: "LogBuilder") -> None:
    """B11: the quota `pending` counts them. Those of a template count with their prompt."""
    own = ShellRequested(message_id="msg_s", call_id="call_s", command="ls", agent="build")
    sessions: dict[Address, ProjectedSession] = {}

    def pending_after(*events: SessionEvent) -> int:
        fold(log_builder.commit(AT, *events), sessions=sessions)
        return sessions[AT].row.pending

    assert pending_after(CREATED, own, admission("msg_1")) == 2
    of_prompt = own.model_copy(update={"message_id": "msg_t", "prompt_id": "msg_2"})
    assert pending_after(of_prompt, admission("msg_2")) == 3
    started = ShellStarted(message_id="msg_s", call_id="call_s", command="ls", agent="build")
    assert pending_after(started) == 3
    assert pending_after(ShellEnded(message_id="msg_s", call_id="call_s", output="")) == 2
    again = own.model_copy(update={"message_id": "msg_u"})
    assert pending_after(again) == 3
    assert pending_after(InputCancelled(message_id="msg_u")) == 2
