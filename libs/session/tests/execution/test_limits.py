"""What stops a drain although a turn is owed: limits, budgets, repeated calls, policies."""

from dataclasses import replace

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    released,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AttemptFinished,
    BudgetSet,
    ExecutionRecovered,
    InterruptRequested,
    ResumeRequested,
    SessionEvent,
    StepEnded,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.execution.budget import TenantUsage
from fairlead_session.execution.recovery import (
    INTERRUPTED_TOOL,
    RecoveryPolicy,
    settle_attempt,
    stop_open_work,
)
from fairlead_session.next_move import (
    AwaitCalls,
    DrainLimits,
    EndStep,
    Rest,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
)
from fairlead_session.state.session import Session
from fairlead_session.turn.step_end import end_step

READY = (CREATED, INITIALISED, admitted("msg_1"), claimed(), promoted("msg_1"))


def call(number: int, value: object = 1) -> tuple[SessionEvent, ...]:
    id_ = f"c{number}"
    return (
        ToolInputStarted(assistant_message_id="msg_a", call_id=id_, name="read"),
        ToolCalled(
            assistant_message_id="msg_a",
            call_id=id_,
            tool="read",
            input={"path": value},
            provider=Executor(),
            agent="build",
            retry="once",
        ),
    )


def settled(number: int) -> ToolSucceeded:
    return ToolSucceeded(
        assistant_message_id="msg_a",
        call_id=f"c{number}",
        structured={},
        content=(),
        provider=Executor(),
    )


FINISHED = AttemptFinished(
    attempt_id="att_1",
    assistant_message_id="msg_a",
    finish="tool-calls",
    cost=0.5,
    tokens=Tokens(input=3),
)


def looped(times: int, *, same: bool) -> Session:
    """A session whose model made one call in each of so many turns."""
    session = given(*READY)
    for number in range(times):
        value = 1 if same else number
        turn = (dispatched(step=number + 1), step_started(), *call(number, value), FINISHED)
        session = then(session, *turn, settled(number), step_ended())
    return session


def test_a_finished_stream_waits_for_its_calls_and_then_ends_its_step() -> None:
    """D-33, E-03: the step ends after all local calls are settled, with what the stream said."""
    waiting = given(*READY, dispatched(), step_started(), *call(1), *call(2), FINISHED)
    one_left = then(waiting, settled(1))
    done = then(one_left, settled(2))

    assert next_move(waiting) == AwaitCalls(waiting.calls)
    assert [call.call_id for call in one_left.calls] == ["c2"]
    move = next_move(done)
    assert isinstance(move, EndStep)
    (ending,) = end_step(move.attempt)
    assert isinstance(ending, StepEnded)
    assert ending.cost == 0.5
    after = then(done, ending)
    assert next_move(after) == TakeTurn((), 2)
    assert after.profile is not None
    assert after.usage.cost == 0.5


def test_a_settlement_counts_once() -> None:
    """E-20: a second settlement of one call changes nothing."""
    once = given(*READY, dispatched(), step_started(), *call(1), FINISHED, settled(1))

    assert then(once, settled(1)).calls == once.calls == ()


def test_a_started_call_names_its_worker() -> None:
    started = ToolStarted(assistant_message_id="msg_a", call_id="c1", worker="wkr_1", generation=1)
    session = given(*READY, dispatched(), step_started(), *call(1), started)

    assert session.calls[0].worker == "wkr_1"


def test_the_turn_limit_stops_a_loop_durably_and_new_input_starts_anew() -> None:
    """Q-02, E-22 decided: 25 turns per activity, B-21, E-25: promotion resets the count."""
    session = looped(3, same=False)

    assert next_move(session, DrainLimits(turns_max=4)) == TakeTurn((), 4)
    assert next_move(session, DrainLimits(turns_max=3)) == Rest(
        "turn-limit", "3 provider turns without new input"
    )
    more = then(session, admitted("msg_2"))
    assert isinstance(next_move(more, DrainLimits(turns_max=3)), TakeTurn)
    resumed = then(session, ResumeRequested())
    assert next_move(resumed, DrainLimits(turns_max=3)) == TakeTurn((), 1)


def test_an_agent_with_more_steps_than_a_drain_has_turns_ends_with_the_turns() -> None:
    """E-22 decided: the smaller bound holds."""
    session = looped(3, same=False)

    assert isinstance(next_move(session, DrainLimits(turns_max=3, steps=9)), Rest)
    assert next_move(session, DrainLimits(turns_max=9, steps=9)) == TakeTurn((), 4)


def test_an_agent_that_takes_over_after_its_steps_still_says_its_last_word() -> None:
    """E-23: a switch to fewer steps leaves one final text step, and no more than the turns."""
    session = looped(3, same=False)
    switched = DrainLimits(turns_max=9, steps=2, agent="plan")

    assert next_move(session, switched) == TakeTurn((), 4, final=True)
    assert isinstance(next_move(session, replace(switched, agent="build")), Rest)
    assert isinstance(next_move(session, replace(switched, turns_max=3)), Rest)
    plan = {"agent": "plan"}
    said = then(
        session,
        dispatched(step=4).model_copy(update=plan),
        step_started().model_copy(update=plan),
        *call(4),
        FINISHED,
        settled(4),
        step_ended(),
    )
    assert isinstance(next_move(said, switched), Rest)


def test_a_failed_call_continues_like_one_that_succeeded() -> None:
    """E-04, E-06: the model is told of its error."""
    failed = ToolFailed(
        assistant_message_id="msg_a",
        call_id="c1",
        error=ErrorInfo(message="Unknown tool: read"),
        provider=Executor(),
    )
    turn = (dispatched(), step_started(), *call(1), FINISHED, failed, step_ended())

    assert next_move(given(*READY, *turn)) == TakeTurn((), 2)


def test_an_agents_last_step_is_text_only() -> None:
    """Q-07, E-23: on the last allowed step no tools are offered."""
    session = looped(1, same=False)

    assert next_move(session, DrainLimits(steps=3)) == TakeTurn((), 2, final=False)
    assert next_move(session, DrainLimits(steps=2)) == TakeTurn((), 2, final=True)
    assert isinstance(next_move(session, DrainLimits(steps=1)), Rest)


def test_the_same_call_made_again_and_again_stops_the_session() -> None:
    """E-30: five identical calls in a row; other calls in between start the count anew."""
    assert isinstance(next_move(looped(4, same=True)), TakeTurn)
    assert next_move(looped(5, same=True)) == Rest(
        "repeated-calls", "the same call was made 5 times in a row"
    )
    assert isinstance(next_move(looped(6, same=False)), TakeTurn)


@pytest.mark.parametrize("fresh", [promoted("msg_2"), ResumeRequested()])
def test_new_input_and_a_resume_begin_the_count_of_repeated_calls_anew(fresh: SessionEvent) -> None:
    """E-30: a person who asks again may want the same call once more."""
    session = then(looped(5, same=True), fresh)

    turn = (dispatched(step=1), step_started(), *call(9), FINISHED, settled(9), step_ended())
    after = then(session, *turn)

    assert isinstance(next_move(after), TakeTurn)


def test_while_a_tenants_sum_is_unknown_no_provider_is_called() -> None:
    """A limit is never passed unseen; without one nobody has to know."""
    session = given(*READY)

    move = next_move(session, DrainLimits(tenant=TenantUsage(cost_max=1.0, is_known=False)))

    assert move == Rest("budget-unknown", "what the tenant has used cannot be asked now")
    assert isinstance(next_move(session, DrainLimits(tenant=TenantUsage(is_known=False))), TakeTurn)
    resting = then(session, released("budget-unknown"))
    assert is_moving(resting), "it goes on by itself"


def test_a_session_over_its_budget_rests_until_it_is_raised() -> None:
    """Budgets are checked before each provider call, new input included."""
    session = then(looped(1, same=False), BudgetSet(cost=0.0), admitted("msg_2"))

    move = next_move(session)
    assert isinstance(move, Rest)
    assert move.reason == "over-budget"
    raised = then(session, released("over-budget"), BudgetSet(cost=10.0))
    assert isinstance(next_move(raised), TakeTurn)
    assert is_moving(raised)


@pytest.mark.parametrize(
    "spent", [TenantUsage(cost=2, cost_max=1), TenantUsage(tokens=9, tokens_max=9)]
)
def test_a_tenant_over_its_budget_calls_no_provider(spent: TenantUsage) -> None:
    move = next_move(given(*READY), DrainLimits(tenant=spent))

    assert isinstance(move, Rest)
    assert "tenant" in (move.detail or "")


@pytest.mark.parametrize("policy", ["ask", "hold"])
def test_a_policy_may_hold_a_recovered_turn_back(policy: RecoveryPolicy) -> None:
    """P-01: under ask and hold nothing runs until somebody resumes it."""
    crashed = given(*READY, dispatched(), claimed(2, "run_b"))
    assert crashed.turn.attempt is not None
    recovered = then(crashed, *settle_attempt(crashed, crashed.turn.attempt, policy, "que_1"))

    move = next_move(recovered)
    assert isinstance(move, Rest)
    assert move.reason == "held"
    assert isinstance(next_move(then(recovered, ResumeRequested())), TakeTurn)


def test_an_interrupt_settles_everything_that_is_open() -> None:
    """D-11, E-16: partial output closed, calls interrupted, the step failed."""
    session = given(*READY, dispatched(), step_started(), *call(1), InterruptRequested())

    assert next_move(session) == Stop()
    events = stop_open_work(session)
    assert [type(event) for event in events] == [ToolFailed, StepFailed]
    assert isinstance(events[0], ToolFailed)
    assert events[0].error.message == INTERRUPTED_TOOL
    rested = then(session, *events, released("interrupted"))
    assert rested.calls == ()
    assert next_move(rested) == Rest("idle")


def test_an_interrupt_after_the_stream_ended_still_ends_the_step() -> None:
    """E-17: since the step finish was seen, step.ended is written instead of step.failed."""
    session = given(*READY, dispatched(), step_started(), *call(1), FINISHED, InterruptRequested())

    events = stop_open_work(session)

    assert isinstance(events[-1], StepEnded)
    assert next_move(then(session, *events, released("interrupted"))) == Rest("idle")


def test_an_interrupt_before_any_output_leaves_no_assistant() -> None:
    session = given(*READY, dispatched(), InterruptRequested())

    assert stop_open_work(session) == ()
    assert next_move(then(session, released("interrupted"))) == Rest("idle")


def test_a_wake_after_the_interrupt_counts_and_one_before_does_not() -> None:
    """C-12, C-13: earlier wakes are dropped, the inbox is kept, what comes after runs."""
    before = given(*READY, admitted("msg_2"), dispatched(), InterruptRequested())
    quiet = then(before, released("interrupted"))
    after_prompt = then(before, admitted("msg_3"), released("interrupted"))

    assert len(quiet.inbox.pending) == 1
    assert not is_moving(quiet)
    assert is_moving(after_prompt)


def test_calls_that_an_interrupt_settles_do_not_stir() -> None:
    """C-12, C-16: what was pending before the interrupt waits for somebody to ask."""
    calling = (*READY, dispatched(), step_started(), *call(1), admitted("msg_2", delivery="queue"))
    stopping = given(*calling, InterruptRequested())

    rested = then(stopping, *stop_open_work(stopping), released("interrupted"))

    assert len(rested.inbox.pending) == 1
    assert not is_moving(rested)


def test_a_resume_during_the_cleanup_of_an_interrupt_is_owed_after_it() -> None:
    """C-14: unless it is interrupted again."""
    session = given(*READY, dispatched(), step_started(), InterruptRequested(), ResumeRequested())
    again = then(session, InterruptRequested())

    assert isinstance(
        next_move(then(session, *stop_open_work(session), released("interrupted"))), TakeTurn
    )
    assert next_move(then(again, *stop_open_work(again), released("interrupted"))) == Rest("idle")


def test_a_dead_owners_calls_are_awaited_before_its_turn_is_settled() -> None:
    """E-14: results of running tools are recorded before the failure surfaces."""
    crashed = given(*READY, dispatched(), step_started(), *call(1), claimed(2, "run_b"))

    assert next_move(crashed) == AwaitCalls(crashed.calls)
    recovered = then(crashed, settled(1))
    assert recovered.turn.attempt is not None
    events = settle_attempt(recovered, recovered.turn.attempt, "auto", "que_1")
    assert isinstance(events[-1], ExecutionRecovered)
    assert isinstance(next_move(then(recovered, *events)), TakeTurn)


def test_a_session_that_goes_on_beyond_an_old_limit_survives_a_hand_over() -> None:
    """P-02: after the claim the session moves again, also under a later owner."""
    over = given(CREATED, admitted("msg_1"), claimed(), released("over-budget"))

    after = then(over, claimed(2), released("handover"))

    assert (is_moving(over), is_moving(after)) == (False, True)
