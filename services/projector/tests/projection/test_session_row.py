"""When a session has an owner and when a turn is owed."""

from typing import TYPE_CHECKING

import pytest

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.rows import SessionRow
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    BudgetSet,
    CompactionFailed,
    CompactionRequested,
    CompactionUsed,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
    PromptPromoted,
    ResumeRequested,
    SessionCreated,
    SessionEvent,
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
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import ErrorInfo, Executor

if TYPE_CHECKING:
    from services.projector.tests.conftest import Given

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


def call_events(id_: str, *, executed: bool = False) -> tuple[SessionEvent, ...]:
    provider = Executor(executed=executed)
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


def row_after(given: "Given", *events: SessionEvent) -> SessionRow:
    entry = given.commit(AT, CREATED, *events)
    return row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[AT]


def test_the_owner_stands_from_claim_to_release(given: "Given") -> None:
    assert row_after(given, CLAIMED).owner == "run_1"


def test_a_released_session_has_no_owner(given: "Given") -> None:
    assert row_after(given, CLAIMED, release("idle")).owner is None


def test_admitted_input_alone_owes_no_turn(given: "Given") -> None:
    assert not row_after(given, ADMITTED).owed


@pytest.mark.parametrize("event", [PROMOTED, ResumeRequested(), DISPATCHED])
def test_promotion_resume_and_dispatch_owe_a_turn(given: "Given", event: SessionEvent) -> None:
    assert row_after(given, ADMITTED, event).owed


def test_an_ended_step_without_calls_owes_nothing(given: "Given") -> None:
    assert not row_after(given, ADMITTED, PROMOTED, DISPATCHED, STARTED, ENDED).owed


def test_a_step_with_local_calls_still_owes_a_turn(given: "Given") -> None:
    assert row_after(given, DISPATCHED, STARTED, *call_events("c"), settlement("c"), ENDED).owed


def test_a_step_with_only_provider_calls_owes_nothing(given: "Given") -> None:
    assert not row_after(given, DISPATCHED, STARTED, *call_events("c", executed=True), ENDED).owed


def test_a_parked_session_stays_in_the_net_until_its_calls_are_settled(given: "Given") -> None:
    """A settlement's wake may be lost: the sweep looks again, ever less often."""
    parked = (CLAIMED, DISPATCHED, STARTED, *call_events("c"), release("parked"))

    row = row_after(given, ADMITTED, *parked)
    assert (row.owed, row.owner) == (True, None)


def test_the_last_settlement_after_parking_owes_a_turn(given: "Given") -> None:
    parked = (CLAIMED, DISPATCHED, STARTED, *call_events("c"), *call_events("d"), release("parked"))

    first = row_after(given, *parked, settlement("c"))
    last = row_after(given, *parked, settlement("c"), settlement("d"))

    assert (first.owed, first.work_requested) == (True, False)
    assert (last.owed, last.work_requested) == (True, True)


def test_a_handover_keeps_the_debt(given: "Given") -> None:
    assert row_after(given, CLAIMED, DISPATCHED, release("handover")).owed


def test_a_failed_rest_clears_the_debt(given: "Given") -> None:
    failed = StepFailed(assistant_message_id="msg_a", error=ErrorInfo(message="no"))

    assert not row_after(given, CLAIMED, DISPATCHED, STARTED, failed, release("failed")).owed


def test_a_requested_compaction_is_owed_until_its_runner_rests(given: "Given") -> None:
    """C-25, G-40: whatever came of it, the sweep then leaves the session alone."""
    why = CompactionFailed(reason="manual", outcome="nothing", message="nothing was said yet")
    asked = row_after(given, CompactionRequested())

    entry = given.commit(OTHER, CREATED, CompactionRequested(), CLAIMED, why, release("idle"))
    done = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (asked.owed, asked.work_requested) == (True, True)
    assert (done.owed, done.work_requested, done.owner) == (False, False, None)


def test_a_summary_counts_in_the_totals(given: "Given") -> None:
    used = CompactionUsed(message_id="msg_c", model=MODEL, cost=0.5, tokens=Tokens(input=7))

    row = row_after(given, CLAIMED, used)

    assert (row.cost, row.tokens.input, row.updated_at) == (0.5, 7, 3)


def test_over_its_budget_a_session_waits_in_peace_until_the_limit_is_raised(
    given: "Given",
) -> None:
    over = (BudgetSet(cost=1), CLAIMED, PROMOTED, release("over-budget"))
    resting = row_after(given, *over)
    lowered = row_after(given, *over, BudgetSet(cost=0.5))

    raised = row_changes.fold_batch(
        {}, [log_entries.decode_entry(given.commit(OTHER, CREATED, *over, BudgetSet()))]
    )

    assert (resting.owed, resting.work_requested) == (True, False)
    assert (lowered.owed, lowered.work_requested) == (True, False)
    assert (raised.sessions[OTHER].owed, raised.sessions[OTHER].work_requested) == (True, True)


def test_after_an_interrupt_only_newer_requests_stir(given: "Given") -> None:
    """C-13, C-16: what is pending stays so, unless it came after the interrupt."""
    newer = ADMITTED.model_copy(update={"message_id": "msg_n"})
    stopped = (CLAIMED, ADMITTED, InterruptRequested())
    resting = row_after(given, *stopped, release("interrupted"))

    entry = given.commit(OTHER, CREATED, *stopped, newer, release("interrupted"))
    stirred = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (resting.pending, resting.work_requested) == (1, False)
    assert (stirred.pending, stirred.work_requested) == (2, True)


def test_calls_that_an_interrupt_settles_do_not_stir(given: "Given") -> None:
    """C-12, C-16: the sweep leaves alone what was pending before the interrupt."""
    calling = (ADMITTED, CLAIMED, DISPATCHED, STARTED, *call_events("c"))

    row = row_after(given, *calling, InterruptRequested(), settlement("c"), release("interrupted"))

    assert (row.pending, row.work_requested) == (1, False)


def test_a_resume_during_the_cleanup_of_an_interrupt_stays_in_the_net(given: "Given") -> None:
    """C-14: should its wake be lost, the sweep finds it."""
    asked = (InterruptRequested(), ResumeRequested(), release("interrupted"))

    row = row_after(given, CLAIMED, DISPATCHED, *asked)

    assert (row.owed, row.work_requested) == (True, True)


def test_an_interrupt_that_nobody_honours_stays_in_the_net(given: "Given") -> None:
    """C-12: parked and unowned; should ingest die before its wake, the sweep finds it."""
    parked = (CLAIMED, DISPATCHED, STARTED, *call_events("c"), release("parked"))

    told = row_after(given, ADMITTED, *parked, InterruptRequested())

    assert (told.interrupted, told.owner, told.work_requested) == (True, None, False)


def test_an_interrupt_of_what_nobody_has_begun_leaves_it_in_peace(given: "Given") -> None:
    """C-16: no wake for it, until somebody asks again."""
    row = row_after(given, ADMITTED, InterruptRequested())
    entry = given.commit(
        OTHER, CREATED, ADMITTED, InterruptRequested(), ResumeRequested(forced=False)
    )
    stirred = row_changes.fold_batch({}, [log_entries.decode_entry(entry)]).sessions[OTHER]

    assert (row.interrupted, row.work_requested, row.pending, row.rested) == (
        False,
        False,
        1,
        "interrupted",
    )
    assert (stirred.work_requested, stirred.owed) == (True, False)


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
    given: "Given",
    news: SessionEvent,
    waits: bool,  # noqa: FBT001
) -> None:
    """P-03: should ingest die before its wake, the sweep does not wait for the timer."""
    later = ExecutionReleased(generation=1, reason="retry-later", wake_at=9)

    row = row_after(given, CLAIMED, PROMOTED, DISPATCHED, later, news)

    assert (row.wake_at is not None) is waits


def test_a_provider_that_paused_owes_the_rest(given: "Given") -> None:
    """A turn is due without a local call: a hand-over must not take it out of the net."""
    paused = ENDED.model_copy(update={"finish": "pause"})

    assert row_after(given, CLAIMED, DISPATCHED, STARTED, paused, release("handover")).owed
