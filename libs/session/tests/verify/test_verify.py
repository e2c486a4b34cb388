"""The checker sees every planted violation, and none in a valid life."""

import pytest
from hypothesis import given
from libs.session.tests.conftest import (
    CREATED,
    MODEL,
    PROPERTY,
    admitted,
    claimed,
    dispatched,
    promoted,
    recorded,
    released,
    step_ended,
    step_started,
)
from libs.session.tests.test_life import lived, plans

from fairlead_schema.events import (
    AttemptOverflowed,
    CompactionEnded,
    CompactionRequested,
    CompactionStarted,
    ExecutionRecovered,
    InputCancelled,
    InputEdited,
    InterruptRequested,
    ReasoningEnded,
    ReasoningStarted,
    ResumeRequested,
    SessionEvent,
    SessionPurged,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.events.turn import RetryError
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import ErrorInfo, Executor, RetryClass
from fairlead_session.verify.verify import verify

HERE = Executor(executed=False)
OPENED = (CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched("msg_a"))
STREAMING = (*OPENED, step_started("msg_a"))
RETRIED = ExecutionRecovered(attempt_id="att_msg_a", action="retried", detail="again")


def called(
    call: str = "call_1", *, retry: RetryClass | None = "once", executor: Executor = HERE
) -> ToolCalled:
    return ToolCalled(
        assistant_message_id="msg_a",
        call_id=call,
        tool="read",
        input={},
        provider=executor,
        retry=retry,
    )


def started(call: str = "call_1") -> ToolStarted:
    return ToolStarted(assistant_message_id="msg_a", call_id=call, worker="wkr_1", generation=1)


def settled(call: str = "call_1") -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id="msg_a", call_id=call, structured={}, content=(), provider=HERE
    )


def failed(call: str = "call_1") -> ToolFailed:
    error = ErrorInfo(message="no")
    return ToolFailed(assistant_message_id="msg_a", call_id=call, error=error, provider=HERE)


def text(id_: str = "t") -> tuple[TextStarted, TextEnded]:
    return (
        TextStarted(assistant_message_id="msg_a", text_id=id_),
        TextEnded(assistant_message_id="msg_a", text_id=id_, text="hi"),
    )


def thought() -> tuple[ReasoningStarted, ReasoningEnded]:
    return (
        ReasoningStarted(assistant_message_id="msg_a", reasoning_id="r"),
        ReasoningEnded(assistant_message_id="msg_a", reasoning_id="r", text="hm"),
    )


def typed() -> tuple[ToolInputStarted, ToolInputEnded]:
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id="call_1", name="read"),
        ToolInputEnded(assistant_message_id="msg_a", call_id="call_1", text="{}"),
    )


def step_failed(assistant: str = "msg_a") -> StepFailed:
    return StepFailed(assistant_message_id=assistant, error=ErrorInfo(message="no"))


def edited(id_: str) -> InputEdited:
    return InputEdited(message_id=id_, prompt=Prompt(text="else"), delivery="steer")


COMPACTING = CompactionStarted(message_id="msg_c", reason="auto")
COMPACTED = CompactionEnded(message_id="msg_c", reason="auto", text="sum", recent="")
PLANTED: dict[str, tuple[SessionEvent, ...]] = {
    "compaction-owned": (CREATED, COMPACTING),
    "compaction-started": (CREATED, claimed(), COMPACTING, COMPACTED, COMPACTED),
    "created-first": (CREATED, CREATED),
    "purged-last": (CREATED, SessionPurged(), admitted("msg_1")),
    "admitted-once": (CREATED, admitted("msg_1"), admitted("msg_1")),
    "promoted-once": (*OPENED, RETRIED, promoted("msg_1")),
    "promoted-in-order": (CREATED, admitted("msg_1"), admitted("msg_2"), promoted("msg_2")),
    "pending-only": (*OPENED, InputCancelled(message_id="msg_1")),
    "generation": (CREATED, claimed(2), claimed(2, "run_b")),
    "released-by-owner": (CREATED, claimed(1), claimed(2, "run_b"), released(generation=1)),
    "rest": (CREATED, claimed(), admitted("msg_1"), released()),
    "one-attempt": (*OPENED, dispatched("msg_b")),
    "attempt-owned": (CREATED, dispatched()),
    "tools-settled": (*STREAMING, called(), step_ended(), dispatched("msg_b")),
    "step-once": (*STREAMING, step_ended(), step_started("msg_a")),
    "step-open": (*STREAMING, step_started("msg_a")),
    "step-dispatched": (*OPENED, step_started("msg_b")),
    "step-ended": (*STREAMING, step_ended(), step_failed()),
    "block-once": (*STREAMING, text()[0], text()[0]),
    "block-started": (*STREAMING, *text(), text()[1]),
    "block-closed": (*STREAMING, thought()[0], step_ended()),
    "called-once": (*STREAMING, called(), settled(), called()),
    "started-unsettled": (*STREAMING, called(), settled(), started()),
    "started-once": (*STREAMING, called(), started(), started()),
    "settled-once": (*STREAMING, called(), started(), settled(), failed()),
    "settled-called": (*STREAMING, settled()),
}

VALID: dict[str, tuple[SessionEvent, ...]] = {
    "a turn": (*STREAMING, *text(), *thought(), step_ended(), released()),
    "a turn with a call": (
        *(*STREAMING, *typed(), called(), started(), settled(), step_ended()),
        *(dispatched("msg_b", 2), step_started("msg_b"), step_ended("msg_b"), released()),
    ),
    "a pure call, run again": (*STREAMING, called(retry="pure"), started(), started(), settled()),
    "a hosted call is nobody's to wait for": (
        *(*STREAMING, called(executor=Executor(executed=True)), step_ended()),
        dispatched("msg_b"),
    ),
    "an input whose call never came": (*STREAMING, typed()[0], failed(), step_failed()),
    "a take-over": (
        *OPENED,
        claimed(2, "run_b"),
        RETRIED,
        dispatched("msg_b"),
        released("failed", 2),
    ),
    "a retried request": (
        *OPENED,
        TurnRetried(attempt=1, error=RetryError(message="busy", is_retryable=True)),
        dispatched("msg_b"),
    ),
    "a steer overtakes a queued input": (
        *(CREATED, admitted("msg_1", delivery="queue"), admitted("msg_2")),
        *(promoted("msg_2"), promoted("msg_1")),
    ),
    "a queued input becomes a steer": (
        *(CREATED, admitted("msg_1"), admitted("msg_2", delivery="queue"), admitted("msg_3")),
        *(edited("msg_2"), promoted("msg_1"), promoted("msg_2"), promoted("msg_3")),
    ),
    "an overflow and its compaction": (
        *OPENED,
        AttemptOverflowed(attempt_id="att_msg_a", message="too long"),
        *(COMPACTING, COMPACTED, dispatched("msg_b")),
    ),
    "a compaction whose runner died": (
        *(CREATED, claimed(), COMPACTING, claimed(2, "run_b")),
        COMPACTING.model_copy(update={"message_id": "msg_d"}),
        COMPACTED.model_copy(update={"message_id": "msg_d"}),
    ),
    "input that an interrupt kept is not asked for by a compaction": (
        *(CREATED, claimed(), admitted("msg_1"), InterruptRequested()),
        *(released("interrupted"), CompactionRequested(), claimed(2), released(generation=2)),
    ),
    "input that a failure kept is not asked for by a compaction": (
        *(CREATED, admitted("msg_1"), claimed(), released("failed")),
        *(CompactionRequested(), claimed(2), released(generation=2)),
    ),
    "input that nobody asked for may wait": (
        *(CREATED, admitted("msg_1").model_copy(update={"resume": False})),
        *(CompactionRequested(), claimed(), released()),
    ),
    "input may wait at any rest but idleness": (
        *(CREATED, claimed(), admitted("msg_1"), released("interrupted")),
    ),
}


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_violation_is_found_at_its_event(rule: str) -> None:
    events = recorded(*PLANTED[rule])

    violations = verify(events)

    assert rule in {violation.rule for violation in violations}
    assert {violation.seq for violation in violations} == {events[-1].seq}
    assert verify(events[:-1]) == []


@pytest.mark.parametrize("name", VALID)
def test_what_is_allowed_is_no_violation(name: str) -> None:
    assert verify(recorded(*VALID[name])) == []


def test_a_gap_a_repetition_and_a_missing_beginning_are_found() -> None:
    first, two, three = recorded(CREATED, admitted("msg_1"), admitted("msg_2"))
    again = Recorded(first.id, 2, 0, two.event)

    assert [violation.rule for violation in verify((first, three))] == ["sequence"]
    assert [violation.rule for violation in verify((first, again))] == ["event-id"]
    assert [violation.rule for violation in verify((two,))] == ["sequence", "created-first"]


@pytest.mark.parametrize("name", VALID)
def test_an_exact_repeat_of_the_last_commit_is_no_violation(name: str) -> None:
    """H-16, D7: wherever the log repeats its last event, or its last three."""
    events = recorded(*VALID[name], SessionPurged())

    for end in range(1, len(events) + 1):
        for size in (1, 3):
            again = events[max(0, end - size) : end]
            assert verify((*events[:end], *again, *events[end:])) == []


def test_a_repeat_with_other_content_is_a_violation() -> None:
    """H-16: only an exact repeat changes nothing."""
    events = recorded(CREATED, admitted("msg_1"))
    other = Recorded(events[-1].id, 2, events[-1].time, admitted("msg_2"))

    assert [violation.rule for violation in verify((*events, other))] == ["sequence", "event-id"]


def test_a_purged_sessions_last_word_may_stand_alone() -> None:
    assert verify(recorded(SessionPurged(), after=50)) == []
    assert verify(recorded(*OPENED, SessionPurged())) == []


@pytest.mark.parametrize("new_work", [admitted("msg_2"), ResumeRequested()])
def test_what_an_interrupt_kept_is_not_overlooked_once_somebody_asks(
    new_work: SessionEvent,
) -> None:
    before = (CREATED, claimed(), admitted("msg_1"), InterruptRequested(), released("interrupted"))
    events = recorded(*before, new_work, claimed(2), released(generation=2))

    assert [violation.rule for violation in verify(events)] == ["rest"]


def test_an_input_is_not_promoted_after_it_was_cancelled() -> None:
    """B-05: what is cancelled is never seen by the model."""
    events = recorded(CREATED, admitted("msg_1"), InputCancelled(message_id="msg_1"))
    violations = verify((*events, *recorded(promoted("msg_1"), after=3)))

    assert [violation.detail for violation in violations] == ["msg_1 is promoted and cancelled"]


def test_an_input_is_edited_only_while_it_is_pending() -> None:
    assert [violation.rule for violation in verify(recorded(*OPENED, edited("msg_1")))] == [
        "pending-only"
    ]


def test_a_step_of_another_model_is_still_the_dispatched_one() -> None:
    step = StepStarted(assistant_message_id="msg_a", agent="plan", model=MODEL)

    assert verify(recorded(*OPENED, step)) == []


@PROPERTY
@given(plans)
def test_a_valid_life_has_no_violation(plan: list[str]) -> None:
    """B-05, B-06, B-11, C-01: whatever crashes, the checker agrees with the fold."""
    assert verify(lived(plan).log) == []
