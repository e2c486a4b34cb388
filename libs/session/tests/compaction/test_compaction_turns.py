"""Compaction in the life of a turn: what the log holds of it, and what comes next."""

from typing import Any

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    away,
    claimed,
    dispatched,
    given,
    observed,
    promoted,
    recorded,
    released,
    sample,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    AttemptOverflowed,
    BudgetSet,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
    ContextInitialised,
    ContextReplaced,
    ContextUpdated,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    ResumeRequested,
    SessionEvent,
    StepFailed,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage, CompactionMessage
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.tools.content import Executor
from fairlead_session.compaction.overflow import fail_overflowed_step, overflow_message
from fairlead_session.execution.budget import TenantUsage
from fairlead_session.execution.commands import compact, resume
from fairlead_session.execution.recovery import stop_open_work
from fairlead_session.explain import explain
from fairlead_session.next_move import (
    AwaitCalls,
    Compact,
    DrainLimits,
    Rest,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
)
from fairlead_session.state.session import Session
from fairlead_session.state.turn import CompactionProgress
from fairlead_session.turn.boundary import begin_epoch, reconcile
from fairlead_session.turn.epoch import Blocked
from fairlead_session.turn.history import history
from fairlead_session.verify.unfinished import find_unfinished_work

STARTED = CompactionStarted(message_id="msg_c", reason="auto")
ENDED = CompactionEnded(message_id="msg_c", reason="auto", text="summary", recent="tail")
FAILED = CompactionFailed(message_id="msg_c", reason="auto", outcome="failed", message="no")
OVERFLOWED = AttemptOverflowed(attempt_id="att_msg_a", message="too long")
MANUAL = CompactionStarted(message_id="msg_c", reason="manual")
BEGUN = (CREATED, admitted("msg_1"), claimed(), INITIALISED, promoted("msg_1"))


def taking(session: Session) -> TakeTurn:
    move = next_move(session)
    assert isinstance(move, TakeTurn)
    return move


def test_a_start_alone_changes_nothing_visible() -> None:
    """G-15, G-16, G-18: only the end is a message, with summary, recent text and reason."""
    session = given(*BEGUN)

    started, ended = then(session, STARTED), then(session, STARTED, ENDED)

    assert history(started) == history(session)
    (message,) = history(ended)
    assert isinstance(message, CompactionMessage)
    assert (message.summary, message.recent, message.reason) == ("summary", "tail", "auto")
    assert {event.version for event in (STARTED, ENDED)} == {1}


def test_a_turn_rebuilt_after_a_compaction_promotes_nothing_and_keeps_its_number() -> None:
    """B-22, E-25, G-19: new steers wait for the following boundary."""
    session = given(*BEGUN, dispatched(step=4), step_started(), step_ended(finish="pause"))
    came = admitted("msg_2")

    rebuilt = taking(then(session, STARTED, came, ENDED))
    after = then(session, STARTED, came, ENDED, dispatched("msg_b", step=5))

    assert (rebuilt.inputs, rebuilt.step) == ((), 5)
    ended = then(after, step_started("msg_b"), step_ended("msg_b"))
    assert [item.message_id for item in taking(ended).inputs] == ["msg_2"]


def test_a_rebuilt_first_step_is_still_the_first() -> None:
    """E-25: the promotion that opened the turn has reset the count."""
    before = given(*BEGUN, dispatched(step=9), step_started(), step_ended())
    opened = then(before, admitted("msg_2"), promoted("msg_2"), STARTED, ENDED)

    assert taking(opened).step == 1


def test_an_overflow_calls_for_a_compaction_and_then_for_the_same_turn() -> None:
    """G-19, G-30, E-25."""
    session = given(*BEGUN, dispatched(step=3), OVERFLOWED)

    assert next_move(session) == Compact("overflow")
    recovered = then(session, STARTED, ENDED)
    assert taking(recovered) == TakeTurn((), 3)
    assert recovered.compaction.overflowed, "the next one is terminal"


def test_an_overflow_that_cannot_be_helped_fails_the_step_with_its_own_words() -> None:
    """G-33, G-39: no assistant message belongs to the attempt before that."""
    session = given(*BEGUN, dispatched(), OVERFLOWED, STARTED, FAILED)
    assert not any(isinstance(message, AssistantMessage) for message in history(session))
    assert session.turn.attempt is not None

    failed = then(session, *fail_overflowed_step(session))

    answer = failed.transcript.find("msg_a")
    assert isinstance(answer, AssistantMessage)
    assert answer.error is not None
    assert answer.error.message == "too long"
    assert next_move(failed) == Rest("failed", "too long")


def test_a_second_overflow_has_a_message_of_its_own() -> None:
    """G-32."""
    first = given(*BEGUN, dispatched())

    again = then(first, OVERFLOWED, STARTED, ENDED, dispatched("msg_b"))

    assert overflow_message(first, "too long") == "too long"
    assert overflow_message(again, "too long").endswith("even after a compaction: too long")


def test_what_was_tried_counts_for_one_turn_only() -> None:
    """G-32: output, a failure, rest and a resume begin anew; a hand-over and a death do not."""
    session = given(*BEGUN, STARTED, FAILED)
    tried = session.compaction
    error = StepFailed.model_validate(
        {"assistantMessageID": "msg_a", "error": {"type": "unknown", "message": "x"}}
    )

    assert (tried.tries, tried.declined) == (1, True)
    for event in (step_started(), error, released("failed"), ResumeRequested()):
        assert then(session, event).compaction == CompactionProgress()
    for reason in (released("handover"), released("retry-later"), claimed(2)):
        assert then(session, reason).compaction == tried


def test_a_compaction_that_is_asked_for_moves_an_idle_session() -> None:
    """G-40, C-25: it stirs, it is done before anything is promoted, and then there is rest."""
    assert compact(given(CREATED)) == (CompactionRequested(),)
    session = given(CREATED, INITIALISED, promoted("msg_1"), step_started(), step_ended())

    requested = then(session, CompactionRequested())

    assert is_moving(requested)
    assert next_move(requested) == Compact("manual")
    assert next_move(then(requested, admitted("msg_9"))) == Compact("manual")
    assert "compaction that was asked for" in explain(requested).reason


@pytest.mark.parametrize(
    "outcome",
    [
        (MANUAL, ENDED.model_copy(update={"reason": "manual"})),
        (CompactionFailed(reason="manual", outcome="nothing", message="no"),),
        (MANUAL, FAILED.model_copy(update={"reason": "manual"})),
        (MANUAL, InterruptRequested()),
    ],
    ids=["ended", "nothing", "failed", "interrupted"],
)
def test_whatever_comes_of_it_the_request_is_cleared(outcome: tuple[SessionEvent, ...]) -> None:
    """G-40: the log says that it is not asked any more, so nobody is woken for it again."""
    session = given(CREATED, INITIALISED, CompactionRequested(), claimed(), *outcome)

    assert not session.execution.compaction_requested
    assert session.compaction.tries == (1 if session.execution.interrupted else 0)
    assert not then(session, released()).execution.work_requested


KEPT = (CREATED, INITIALISED, admitted("msg_1"), InterruptRequested(), CompactionRequested())


def test_a_compaction_that_is_asked_for_runs_no_input_that_an_interrupt_kept() -> None:
    """G-40, C-16: the request is for a compaction only, even if the owner dies after it."""
    done = CompactionFailed(reason="manual", outcome="nothing", message="no")
    session = given(*KEPT)

    compacted = then(session, claimed(), done)

    assert (is_moving(session), next_move(session)) == (True, Compact("manual"))
    assert next_move(compacted) == next_move(then(compacted, claimed(2))) == Rest("idle")
    rested = then(compacted, released())
    assert (len(rested.inbox.pending), is_moving(rested)) == (1, False)
    assert find_unfinished_work(recorded(*KEPT, claimed(), done, released())) == ()


@pytest.mark.parametrize("more", [admitted("msg_2"), ResumeRequested(forced=False)])
def test_what_is_asked_for_during_a_compaction_is_done_after_it(more: SessionEvent) -> None:
    """C-13, C-16: a prompt or a stir makes the kept input move, as it does at any time."""
    done = CompactionFailed(reason="manual", outcome="nothing", message="no")

    session = given(*KEPT, claimed(), more, done)

    assert taking(session).inputs[0].message_id == "msg_1"


def test_a_resume_during_a_compaction_is_not_taken_for_granted() -> None:
    """C-16: the compaction alone would take no turn, so a resume has to be recorded."""
    compacting = given(*KEPT, claimed(), MANUAL)

    assert resume(compacting) == (ResumeRequested(),)
    assert resume(then(compacting, admitted("msg_2"))) == ()


def test_a_session_that_is_given_up_asks_for_no_compaction_any_more() -> None:
    """G-15: else a defect during a summary would be met again and again."""
    session = given(CREATED, INITIALISED, CompactionRequested(), claimed(), released("failed"))

    assert not is_moving(session)
    assert (
        find_unfinished_work(
            recorded(CREATED, CompactionRequested(), claimed(), released("failed"))
        )
        == ()
    )


def test_a_compaction_waits_until_its_budget_is_known() -> None:
    """G-40: no provider is called for it in the dark; it stays asked for."""
    session = given(CREATED, INITIALISED, CompactionRequested(), claimed())
    dark = DrainLimits(tenant=TenantUsage(cost_max=1.0, is_known=False))

    move = next_move(session, dark)

    assert isinstance(move, Rest)
    assert move.reason == "budget-unknown"
    rested = then(session, released("budget-unknown"))
    assert (is_moving(rested), next_move(rested)) == (True, Compact("manual"))


def test_a_death_during_a_requested_summary_leaves_it_asked_for() -> None:
    """G-15: with its try counted."""
    session = given(CREATED, INITIALISED, CompactionRequested(), claimed(), MANUAL, claimed(2))

    assert next_move(session) == Compact("manual")
    assert session.compaction == CompactionProgress(tries=1)


def test_an_interrupt_during_a_summary_leaves_nothing() -> None:
    """G-34: the previous boundary stays active, and nothing is owed."""
    session = given(*BEGUN, dispatched(), OVERFLOWED, STARTED, InterruptRequested())

    assert next_move(session) == Stop()
    assert stop_open_work(session) == ()
    rested = then(session, released("interrupted"))
    assert [message.id for message in history(rested)] == ["msg_1"]
    assert (rested.turn.attempt, rested.execution.owed, rested.compaction) == (
        None,
        False,
        CompactionProgress(),
    )


def test_a_summary_counts_in_the_totals_and_against_the_budget() -> None:
    used = CompactionUsed.model_validate(
        {
            "messageID": "msg_c",
            "model": {"id": "fast", "providerID": "acme"},
            "cost": 0.5,
            "tokens": {
                "input": 90, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}
            },
        }
    )  # fmt: skip
    session = given(*BEGUN, BudgetSet(tokens=100), STARTED, used, ENDED)

    assert session.profile is not None
    assert (session.usage.cost, session.usage.tokens) == (0.5, Tokens(input=90, output=10))
    assert next_move(session) == Rest("over-budget", "the session has used 100 of 100 tokens")
    requested = then(session, CompactionRequested())
    assert next_move(requested) == Compact("manual", "the session has used 100 of 100 tokens")


def initialised(value: object) -> ContextInitialised:
    events = begin_epoch(sample(observed("core/date", value)))
    assert not isinstance(events, Blocked)
    (event,) = events
    assert isinstance(event, ContextInitialised)
    return event


def test_after_a_compaction_the_next_attempt_has_a_fresh_baseline() -> None:
    """F-38, G-19: it begins at the compaction's own sequence, though nothing changed."""
    session = given(CREATED, initialised(1), promoted("msg_1"), STARTED, ENDED)
    seq = session.seq

    (event,) = reconcile(session, sample(observed("core/date", 1)), "msg_s")
    replaced = then(session, event)

    assert isinstance(event, ContextReplaced)
    assert replaced.epoch is not None
    assert replaced.epoch.seq == seq
    assert reconcile(replaced, sample(observed("core/date", 1)), "msg_s2") == ()


def test_while_a_fresh_baseline_is_blocked_the_old_one_and_its_updates_stay() -> None:
    """F-39: even those from before the compaction; what can be observed is still told."""
    update = ContextUpdated(message_id="msg_s", text="Now day 2")
    session = given(CREATED, initialised(1), promoted("msg_1"), update, STARTED, ENDED)

    assert reconcile(session, sample(away("core/date")), "msg_s2") == ()
    assert [message.id for message in history(session)] == ["msg_s", "msg_c"]
    events, _ = reconcile(session, sample(away("core/date"), observed("core/env", 1)), "msg_s2")
    assert isinstance(events, ContextUpdated)


def test_an_update_told_while_it_was_blocked_ends_with_the_old_baseline() -> None:
    """F-38, F-40: a fresh baseline that knows more is never followed by older news."""
    session = given(
        CREATED,
        initialised(1),
        promoted("msg_1"),
        STARTED,
        ENDED,
        ContextUpdated(message_id="msg_s", text="Now day 2"),
    )

    (event,) = reconcile(session, sample(observed("core/date", 3)), "msg_s2")
    replaced = then(session, event)

    assert [message.id for message in history(replaced)] == ["msg_c"]


def test_a_compaction_waits_for_people_and_calls_like_everything_else() -> None:
    """G-40, K-13: it comes once the calls are settled, before the turn that answers them."""
    source = CallSource(message_id="msg_a", call_id="call_1")
    request = PermissionRequest(
        id="per_1", session_id="ses_1", action="bash", resources=("*",), source=source
    )
    call: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": "call_1"}
    finished = AttemptFinished(
        attempt_id="att_msg_a",
        assistant_message_id="msg_a",
        finish="tool-calls",
        cost=0,
        tokens=Tokens(),
    )
    parked = given(
        *BEGUN,
        dispatched(),
        step_started(),
        ToolInputStarted(name="bash", **call),
        ToolCalled(tool="bash", input={}, provider=Executor(), **call),
        finished,
        PermissionAsked(request=request, agent="build"),
        released("parked"),
        CompactionRequested(),
    )
    assert (is_moving(parked), isinstance(next_move(parked), AwaitCalls)) == (False, True)

    after_reply = then(parked, PermissionReplied(request_id="per_1", reply="once"))
    done = ToolSucceeded(structured={}, content=(), provider=Executor(), **call)
    settled = then(after_reply, done, claimed(2), step_ended())

    assert is_moving(after_reply)
    assert next_move(settled) == Compact("manual")
    after = then(settled, CompactionFailed(reason="manual", outcome="nothing", message="no"))
    assert taking(after).step == 2
