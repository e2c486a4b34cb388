"""Outcome unknown: a typed field of the failure, wherever nobody saw how the work ended."""

from itertools import chain

import pytest
from libs.session.tests.calls.test_lifecycle import begin_call, only, started
from libs.session.tests.calls.test_lifecycle import called as called_event
from libs.session.tests.calls.test_lifecycle import session as session_with
from libs.session.tests.conftest import claimed, then

from fairlead_schema.events import (
    SessionEvent,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_schema.provider.request import ToolTurn
from fairlead_schema.tools.content import Executor, FailedCall, RetryClass
from fairlead_session.calls.lifecycle import INTERRUPTED, Failed, Settle, settle
from fairlead_session.execution.recovery import settle_attempt, stop_open_work
from fairlead_session.state.session import Session
from fairlead_session.turn.lowering import lower


def call_events(retry: RetryClass) -> tuple[SessionEvent, ...]:
    begun = ToolInputStarted(assistant_message_id="msg_a", call_id="call_1", name="probe")
    return begun, called_event(retry)


def session(*events: SessionEvent | tuple[SessionEvent, ...]) -> Session:
    flat = (event if isinstance(event, tuple) else (event,) for event in events)
    return session_with(*chain.from_iterable(flat))


def outcome_of(event: SessionEvent) -> str | None:
    assert isinstance(event, ToolFailed)
    return event.error.outcome


def message_of(now: Session) -> AssistantMessage:
    message = now.transcript.find("msg_a")
    assert isinstance(message, AssistantMessage)
    return message


def test_a_once_call_whose_worker_died_has_an_unknown_outcome() -> None:
    """E-20: the event says so, and so does the message that clients read."""
    now = session(call_events("once"), started())

    decision = begin_call(now, "wkr_b", "gone")

    assert isinstance(decision, Settle)
    assert outcome_of(decision.event) == "unknown"
    (block,) = message_of(then(now, decision.event)).content
    assert isinstance(block, ToolBlock)
    assert isinstance(block.state, FailedCall)
    assert block.state.error.outcome == "unknown"


@pytest.mark.parametrize(
    ("retry", "outcome"), [("once", "unknown"), ("idempotent", "unknown"), ("pure", None)]
)
def test_an_interrupted_run_has_an_unknown_outcome_unless_it_changes_nothing(
    retry: RetryClass, outcome: str | None
) -> None:
    """The worker and the runner settle an interrupted call alike."""
    now = session(call_events(retry), started())

    (by_worker,) = settle(now, only(now), INTERRUPTED)
    by_runner = next(event for event in stop_open_work(now) if isinstance(event, ToolFailed))

    assert outcome_of(by_worker) == outcome
    assert outcome_of(by_runner) == outcome


def test_a_call_that_no_worker_has_begun_did_not_run() -> None:
    now = session(call_events("once"))

    failed = [event for event in stop_open_work(now) if isinstance(event, ToolFailed)]

    assert [outcome_of(event) for event in failed] == [None]


def test_a_failure_that_somebody_saw_is_no_unknown_outcome() -> None:
    now = session(call_events("once"), started())

    (failed,) = settle(now, only(now), Failed("No such file"))

    assert outcome_of(failed) is None


def test_the_turn_and_the_hosted_calls_of_a_dead_runner_have_unknown_outcomes() -> None:
    """P-01, D-22: nobody saw how the provider ended them."""
    begun = ToolInputStarted(assistant_message_id="msg_a", call_id="h1", name="web_search")
    hosted = ToolCalled(
        assistant_message_id="msg_a",
        call_id="h1",
        tool="web_search",
        input={},
        provider=Executor(executed=True),
    )
    now = session(begun, hosted, claimed(2, "run_b"))
    attempt = now.turn.attempt
    assert attempt is not None

    events = settle_attempt(now, attempt, "auto", "que_1")

    errors = [event.error for event in events if isinstance(event, (ToolFailed, StepFailed))]
    assert [error.outcome for error in errors] == ["unknown", "unknown"]


def test_the_model_is_told_that_an_outcome_is_unknown() -> None:
    now = session(call_events("once"), started())
    message = message_of(then(now, *settle(now, only(now), INTERRUPTED)))

    (_call, result) = lower((message,), message.model)

    assert isinstance(result, ToolTurn)
    assert result.result.value["outcome"] == "unknown"
