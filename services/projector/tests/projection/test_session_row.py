"""When a session has an owner and when a turn is owed."""

from typing import TYPE_CHECKING, Any

import pytest

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rows import ProjectedSession, SessionRow
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    BudgetSet,
    ChildFinished,
    CompactionFailed,
    CompactionRequested,
    CompactionUsed,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    RevertCommitted,
    SessionArchived,
    SessionCreated,
    SessionDescribed,
    SessionEvent,
    SessionUnarchived,
    StepEnded,
    StepFailed,
    StepStarted,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Commit, ImportMark, decode, encode
from fairlead_schema.session_info import ChangeSummary, ChildrenUsage
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.fold.evolve import evolve
from fairlead_session.info import info
from fairlead_session.state.file_changes import change_summary
from fairlead_session.state.session import Session

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
OTHER = Address("default", "ses_2")
MODEL = ModelRef(id="fast", provider_id="acme")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
PROMPT = Prompt(text="hello")
ADMITTED = PromptAdmitted(message_id="msg_u", prompt=PROMPT, delivery="steer")
PROMOTED = PromptPromoted(message_id="msg_u", prompt=PROMPT, created=2)
DISPATCHED = AttemptDispatched(
    attempt_id="att_1", assistant_message_id="msg_a", agent="build", model=MODEL, step=1
)
STARTED = StepStarted(assistant_message_id="msg_a", agent="build", model=MODEL)
ENDED = StepEnded(assistant_message_id="msg_a", finish="stop", cost=0, tokens=Tokens())


def call_events(id_: str, *, by_provider: bool = False) -> tuple[SessionEvent, ...]:
    provider = Executor(executed=by_provider)
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=id_, name="read"),
        ToolCalled(
            assistant_message_id="msg_a", call_id=id_, tool="read", input={}, provider=provider
        ),
    )


def settlement(id_: str) -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id="msg_a",
        call_id=id_,
        structured={},
        content=(),
        provider=Executor(),
    )


def release(reason: RestReason) -> ExecutionReleased:
    return ExecutionReleased(generation=1, reason=reason)


def row_after(log_builder: "LogBuilder", *events: SessionEvent) -> SessionRow:
    entry = log_builder.commit(AT, CREATED, *events)
    return row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[AT]


def test_the_owner_stands_from_claim_to_release(log_builder: "LogBuilder") -> None:
    assert row_after(log_builder, CLAIMED).owner == "run_1"


def test_the_sweep_does_not_see_work_that_an_import_brought(log_builder: "LogBuilder") -> None:
    """H-14: until somebody here asks for it."""
    events = (CREATED, ADMITTED, CLAIMED, PROMOTED, DISPATCHED)
    recorded = decode(log_builder.payload(AT, *events)).events
    marked = tuple(event._replace(imported=ImportMark(5)) for event in recorded)
    entry = log_builder.raw(AT, encode(Commit("cmt_i", marked)))
    sessions: dict[Address, ProjectedSession] = {}
    row = row_changes.fold_batch(sessions, [log_entries.decode_entry(entry)]).sessions[AT]

    assert (row.owner, row.work_requested, row.interrupted, row.wake_at) == (
        None,
        False,
        False,
        None,
    )
    assert row.pending == 0

    resumed = log_builder.commit(AT, ResumeRequested())
    row = row_changes.fold_batch(sessions, [log_entries.decode_entry(resumed)]).sessions[AT]
    assert (row.work_requested, row.owed) == (True, True)


def test_a_released_session_has_no_owner(log_builder: "LogBuilder") -> None:
    assert row_after(log_builder, CLAIMED, release("idle")).owner is None


def test_admitted_input_alone_owes_no_turn(log_builder: "LogBuilder") -> None:
    assert not row_after(log_builder, ADMITTED).owed


@pytest.mark.parametrize("event", [PROMOTED, ResumeRequested(), DISPATCHED])
def test_promotion_resume_and_dispatch_owe_a_turn(
    log_builder: "LogBuilder", event: SessionEvent
) -> None:
    assert row_after(log_builder, ADMITTED, event).owed


def test_an_ended_step_without_calls_owes_nothing(log_builder: "LogBuilder") -> None:
    assert not row_after(log_builder, ADMITTED, PROMOTED, DISPATCHED, STARTED, ENDED).owed


def test_a_step_with_local_calls_still_owes_a_turn(log_builder: "LogBuilder") -> None:
    assert row_after(
        log_builder, DISPATCHED, STARTED, *call_events("c"), settlement("c"), ENDED
    ).owed


def test_a_step_with_only_provider_calls_owes_nothing(log_builder: "LogBuilder") -> None:
    assert not row_after(
        log_builder, DISPATCHED, STARTED, *call_events("c", by_provider=True), ENDED
    ).owed


def test_a_parked_session_stays_in_the_net_until_its_calls_are_settled(
    log_builder: "LogBuilder",
) -> None:
    """The wake of a settlement may be lost, so the sweep looks again at growing intervals."""
    parked_turn = (CLAIMED, DISPATCHED, STARTED, *call_events("c"), release("parked"))

    row = row_after(log_builder, ADMITTED, *parked_turn)
    assert (row.owed, row.owner) == (True, None)


def test_the_last_settlement_after_parking_owes_a_turn(log_builder: "LogBuilder") -> None:
    parked_turn = (
        CLAIMED,
        DISPATCHED,
        STARTED,
        *call_events("c"),
        *call_events("d"),
        release("parked"),
    )

    after_one = row_after(log_builder, *parked_turn, settlement("c"))
    after_both = row_after(log_builder, *parked_turn, settlement("c"), settlement("d"))

    assert (after_one.owed, after_one.work_requested) == (True, False)
    assert (after_both.owed, after_both.work_requested) == (True, True)


def test_a_handover_keeps_the_debt(log_builder: "LogBuilder") -> None:
    assert row_after(log_builder, CLAIMED, DISPATCHED, release("handover")).owed


def test_a_failed_rest_clears_the_debt(log_builder: "LogBuilder") -> None:
    failure = StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="no"))

    assert not row_after(log_builder, CLAIMED, DISPATCHED, STARTED, failure, release("failed")).owed


def test_a_requested_compaction_is_owed_until_its_runner_rests(log_builder: "LogBuilder") -> None:
    """C-25, G-40: the sweep leaves the session alone after any outcome."""
    failure = CompactionFailed(reason="manual", outcome="nothing", message="nothing was said yet")
    owing_row = row_after(log_builder, CompactionRequested())

    entry = log_builder.commit(
        OTHER, CREATED, CompactionRequested(), CLAIMED, failure, release("idle")
    )
    resting_row = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (owing_row.owed, owing_row.work_requested) == (True, True)
    assert (resting_row.owed, resting_row.work_requested, resting_row.owner) == (False, False, None)


def test_a_summary_counts_in_the_totals(log_builder: "LogBuilder") -> None:
    summary_usage = CompactionUsed(
        message_id="msg_c", model=MODEL, cost=0.5, tokens=Tokens(input=7)
    )

    row = row_after(log_builder, CLAIMED, summary_usage)

    assert (row.cost, row.tokens.input, row.updated_at) == (0.5, 7, 3)


def test_over_its_budget_a_session_waits_in_peace_until_the_limit_is_raised(
    log_builder: "LogBuilder",
) -> None:
    over = (BudgetSet(cost=1), CLAIMED, PROMOTED, release("over-budget"))
    resting = row_after(log_builder, *over)
    lower_limit = row_after(log_builder, *over, BudgetSet(cost=0.5))

    higher_limit = row_changes.fold_batch(
        {}, [log_entries.decode_entry(log_builder.commit(OTHER, CREATED, *over, BudgetSet()))]
    )

    assert (resting.owed, resting.work_requested) == (True, False)
    assert (lower_limit.owed, lower_limit.work_requested) == (True, False)
    assert (higher_limit.sessions[OTHER].owed, higher_limit.sessions[OTHER].work_requested) == (
        True,
        True,
    )


def test_after_an_interrupt_only_newer_requests_stir(log_builder: "LogBuilder") -> None:
    """C-13, C-16: input from before the interrupt requests no work; newer input does."""
    newer = ADMITTED.model_copy(update={"message_id": "msg_n"})
    interrupt = (CLAIMED, ADMITTED, InterruptRequested())
    resting = row_after(log_builder, *interrupt, release("interrupted"))

    entry = log_builder.commit(OTHER, CREATED, *interrupt, newer, release("interrupted"))
    awake = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (resting.pending, resting.work_requested) == (1, False)
    assert (awake.pending, awake.work_requested) == (2, True)


def test_calls_that_an_interrupt_settles_do_not_stir(log_builder: "LogBuilder") -> None:
    """C-12, C-16: the sweep leaves alone input from before the interrupt."""
    calling = (ADMITTED, CLAIMED, DISPATCHED, STARTED, *call_events("c"))

    row = row_after(
        log_builder, *calling, InterruptRequested(), settlement("c"), release("interrupted")
    )

    assert (row.pending, row.work_requested) == (1, False)


def test_a_resume_during_the_cleanup_of_an_interrupt_stays_in_the_net(
    log_builder: "LogBuilder",
) -> None:
    """C-14: the sweep finds the session when its wake is lost."""
    resume = (InterruptRequested(), ResumeRequested(), release("interrupted"))

    row = row_after(log_builder, CLAIMED, DISPATCHED, *resume)

    assert (row.owed, row.work_requested) == (True, True)


def test_an_interrupt_that_nobody_honours_stays_in_the_net(log_builder: "LogBuilder") -> None:
    """C-12: the sweep finds the parked session when ingest dies before its wake."""
    parked_turn = (CLAIMED, DISPATCHED, STARTED, *call_events("c"), release("parked"))

    row = row_after(log_builder, ADMITTED, *parked_turn, InterruptRequested())

    assert (row.interrupted, row.owner, row.work_requested) == (True, None, False)


def test_an_interrupt_of_what_nobody_has_begun_leaves_it_in_peace(
    log_builder: "LogBuilder",
) -> None:
    """C-16: nothing wakes the session until somebody requests work again."""
    row = row_after(log_builder, ADMITTED, InterruptRequested())
    entry = log_builder.commit(
        OTHER, CREATED, ADMITTED, InterruptRequested(), ResumeRequested(forced=False)
    )
    resumed_row = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (row.interrupted, row.work_requested, row.pending, row.rested) == (
        False,
        False,
        1,
        "interrupted",
    )
    assert (resumed_row.work_requested, resumed_row.owed) == (True, False)


@pytest.mark.parametrize(
    ("news", "waits"),
    [
        (ADMITTED.model_copy(update={"delivery": "queue"}), True),
        (ADMITTED.model_copy(update={"resume": False}), True),
        (ADMITTED, False),
        (ResumeRequested(), False),
        (ResumeRequested(forced=False), False),
    ],
)
def test_what_ends_a_back_off_brings_the_session_back_into_the_net(
    log_builder: "LogBuilder",
    news: SessionEvent,
    waits: bool,  # noqa: FBT001
) -> None:
    """P-03: the sweep does not wait for the timer when ingest dies before its wake."""
    later = ExecutionReleased(generation=1, reason="retry-later", wake_at=9)

    row = row_after(log_builder, CLAIMED, PROMOTED, DISPATCHED, later, news)

    assert (row.wake_at is not None) is waits


def test_a_provider_that_paused_owes_the_rest(log_builder: "LogBuilder") -> None:
    """A turn is due without a local call, so a handover keeps the session in the sweep."""
    pause = ENDED.model_copy(update={"finish": "pause"})

    assert row_after(log_builder, CLAIMED, DISPATCHED, STARTED, pause, release("handover")).owed


def test_a_row_counts_by_model_children_and_changed_files_like_the_fold(
    log_builder: "LogBuilder",
) -> None:
    """P-28, D17: the row and the folded session tell the same."""
    at: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "c1"}
    structured = {"resource": "a.py", "additions": 3, "deletions": 1}
    slow = ModelRef(id="slow", provider_id="acme")
    events = (
        CREATED,
        CLAIMED,
        DISPATCHED,
        STARTED,
        ToolInputStarted(**at, name="write"),
        ToolCalled(**at, tool="write", input={}, provider=Executor()),
        ToolSucceeded(**at, structured=structured, content=(), provider=Executor()),
        StepEnded(assistant_message_id="msg_a", finish="stop", cost=2, tokens=Tokens(input=5)),
        CompactionUsed(message_id="msg_c", model=slow, cost=1, tokens=Tokens(output=1)),
        ChildFinished(session_id="ses_2", cost=4, tokens=9),
        SessionArchived(),
        SessionUnarchived(),
    )
    entry = log_builder.commit(AT, *events)
    row = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[AT]
    session = Session(id="ses_1")
    for recorded in decode(entry.payload).events:
        session = evolve(session, recorded)
    told = info(session)

    assert row.models == told.models
    assert [(usage.model.id, usage.requests, usage.cost) for usage in row.models] == [
        ("fast", 1, 2),
        ("slow", 1, 1),
    ]
    assert row.children == told.children == ChildrenUsage(cost=4, tokens=9)
    assert row.file_changes == session.file_changes
    assert change_summary(row.file_changes) == ChangeSummary(files=1, additions=3, deletions=1)
    assert row.archived_at is None


def test_a_committed_revert_takes_file_changes_from_the_row_like_the_fold(
    log_builder: "LogBuilder",
) -> None:
    """P-28: the changes of removed messages leave the summary."""
    at: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "c1"}
    structured = {"resource": "a.py", "additions": 3, "deletions": 1}
    changed = log_builder.commit(
        AT,
        CREATED,
        PROMOTED,
        CLAIMED,
        DISPATCHED,
        STARTED,
        ToolInputStarted(**at, name="write"),
        ToolCalled(**at, tool="write", input={}, provider=Executor()),
        ToolSucceeded(**at, structured=structured, content=(), provider=Executor()),
        ENDED,
    )
    reverted = log_builder.commit(AT, RevertCommitted(message_id=PROMOTED.message_id))
    sessions: dict[Address, ProjectedSession] = {}
    session, counts = Session(id="ses_1"), []
    for entry in (changed, reverted):
        row_changes.fold_batch(sessions, [log_entries.decode_entry(entry)])
        for recorded in decode(entry.payload).events:
            session = evolve(session, recorded)
        assert sessions[AT].row.file_changes == session.file_changes
        counts.append(session.file_changes.additions)

    assert counts == [3, 0]
    assert info(session).summary is None


def test_a_row_is_described_like_the_fold(log_builder: "LogBuilder") -> None:
    """A title and metadata that somebody gave stay until somebody gives others."""
    described = (
        SessionDescribed(title="Mine", metadata={"ticket": 7, "team": "tides"}),
        SessionDescribed(metadata={"ticket": 8}),
        PROMOTED,
    )
    entry = log_builder.commit(AT, CREATED, *described)
    row = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[AT]
    session = Session(id=AT.session_id)
    for recorded in decode(entry.payload).events:
        session = evolve(session, recorded)

    folded = info(session)
    assert (row.title, row.metadata, row.updated_at) == (
        folded.title,
        folded.metadata,
        folded.time.updated,
    )
    assert (folded.title, folded.metadata) == ("Mine", {"ticket": 8})
