"""One sentence for every state a session can be in."""

from typing import get_args

import pytest
from hypothesis import given as hypothesis
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    PROPERTY,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    released,
    step_ended,
    step_started,
)

from fairlead_schema.events import (
    BudgetSet,
    CompactionRequested,
    ExecutionReleased,
    InterruptRequested,
    ResumeRequested,
    SessionArchived,
    SessionEvent,
    StepFailed,
    ToolCalled,
    ToolInputStarted,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.explain import explain, explain_unreadable
from fairlead_session.state.session import Session

CALL = (
    ToolInputStarted(assistant_message_id="msg_a", call_id="c", name="read"),
    ToolCalled(
        assistant_message_id="msg_a", call_id="c", tool="read", input={}, provider=Executor()
    ),
)
TURN = (admitted("msg_1"), claimed(), promoted("msg_1"), dispatched(), step_started())
EVERYTHING: tuple[SessionEvent, ...] = (
    *TURN,
    *CALL,
    admitted("msg_2", resume=False),
    step_ended(),
    InterruptRequested(),
    ResumeRequested(),
    ResumeRequested(forced=False),
    CompactionRequested(),
    SessionArchived(),
    BudgetSet(cost=1.0),
    *(released(reason) for reason in get_args(RestReason)),
)


PARKED = (*TURN, *CALL, released("parked"))


@pytest.mark.parametrize(
    ("events", "state", "code", "word"),
    [
        ((), "idle", "idle", "nothing to do"),
        ((admitted("msg_1"),), "queued", "pending-input", "1 pending input"),
        ((admitted("msg_1", resume=False),), "resting", "idle", "1 inputs are pending"),
        ((ResumeRequested(),), "queued", "turn-owed", "A turn that is owed"),
        ((CompactionRequested(),), "queued", "compaction", "compaction"),
        ((admitted("msg_1"), claimed()), "running", "between-turns", "between two turns"),
        (TURN, "running", "turn", "step 1"),
        ((*TURN, *CALL), "running", "calls", "1 tool calls"),
        ((*TURN, InterruptRequested()), "running", "stopping", "stopping as asked"),
        (PARKED, "waiting", "tool", "the tool read"),
        ((*PARKED, InterruptRequested()), "queued", "stopping", "It was interrupted"),
        ((SessionArchived(),), "archived", "archived", "archived"),
        ((*TURN, released("handover")), "queued", "left-behind", "left behind"),
        ((admitted("msg_1"), InterruptRequested()), "resting", "interrupted", "interrupted it"),
    ],
)
def test_each_state_has_its_sentence_and_its_code(
    events: tuple[SessionEvent, ...], state: str, code: str, word: str
) -> None:
    """P-27, C-20: a durable status, from the log alone."""
    explanation = explain(given(CREATED, INITIALISED, *events))

    assert (explanation.state, explanation.code) == (state, code)
    assert word in explanation.reason
    assert explanation.reason.endswith(".")


@pytest.mark.parametrize("reason", sorted(get_args(RestReason)))
def test_every_reason_to_rest_is_told_with_its_detail(reason: RestReason) -> None:
    rest = ExecutionReleased(generation=1, reason=reason, detail="because", wake_at=9)

    explanation = explain(given(CREATED, INITIALISED, claimed(), rest))

    assert "because" in explanation.reason
    assert explanation.code == reason
    assert explanation.since is not None


@pytest.mark.parametrize(
    "reason", ["context-unavailable", "retry-later", "over-budget", "budget-unknown"]
)
def test_what_waits_for_a_time_or_a_place_does_not_wait_for_a_runner(reason: RestReason) -> None:
    """P-27: work is owed, and no free runner would change that."""
    owed = (admitted("msg_1"), claimed(), promoted("msg_1"), released(reason))

    explanation = explain(given(CREATED, INITIALISED, *owed))

    assert (explanation.state, explanation.code) == ("resting", reason)


def test_a_session_that_does_not_exist_is_missing() -> None:
    assert explain(Session(id="ses_x")).state == "missing"


def test_a_log_that_cannot_be_read_is_told_as_broken() -> None:
    """H-19: its state says so, with what stood there."""
    explanation = explain_unreadable("unknown event from.the.future.9")

    assert (explanation.state, explanation.code) == ("broken", "unreadable")
    assert "from.the.future.9" in explanation.reason


@PROPERTY
@hypothesis(st.lists(st.sampled_from(EVERYTHING), max_size=12))
def test_every_session_that_can_be_folded_is_explained(events: list[SessionEvent]) -> None:
    """P-27: total, whatever the order: a sentence, a code, and never a crash."""
    explanation = explain(given(CREATED, INITIALISED, *events))

    assert explanation.reason.endswith(".")
    assert explanation.code


@pytest.mark.parametrize("rest", ["failed", "idle"])
@pytest.mark.parametrize(
    ("code", "helps"), [("context-overflow", "compact"), ("auth", "key"), ("timeout", "prompt")]
)
def test_a_failure_that_a_prompt_would_repeat_names_what_helps(
    rest: RestReason, code: str, helps: str
) -> None:
    """G-37: after an overflow the same prompt fails again, so the remedy is a smaller request."""
    error = ErrorInfo(message="too long", code=code)
    failed = StepFailed(assistant_message_id="msg_a", error=error, raised=rest == "failed" or None)

    explanation = explain(given(CREATED, INITIALISED, *TURN, failed, released(rest)))

    assert explanation.code == rest
    assert helps in (explanation.next or "")
