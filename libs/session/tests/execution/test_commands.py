"""The commands of people: interrupt, resume, compact, set a budget."""

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

from fairlead_schema.events import (
    BudgetSet,
    CompactionRequested,
    InterruptRequested,
    QuestionAsked,
    QuestionRejected,
    ResumeRequested,
    SessionEvent,
    ToolCalled,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.permission import QuestionRequest
from fairlead_schema.tools.content import Executor
from fairlead_session.execution.commands import (
    budget_lets_go_on,
    compact,
    interrupt,
    interrupt_outcome,
    is_at_rest,
    request_work,
    resume,
    set_budget,
)
from fairlead_session.explain import explain
from fairlead_session.next_move import is_moving, wake_has_work
from fairlead_session.state.usage import Budget

RUNNING = (CREATED, admitted("msg_1"), claimed(), INITIALISED, promoted("msg_1"), dispatched())
CALLED = ToolCalled(
    assistant_message_id="msg_a",
    call_id="call_1",
    tool="bash",
    input={},
    provider=Executor(executed=False),
)


@pytest.mark.parametrize(
    "events",
    [
        (CREATED,),
        (CREATED, admitted("msg_1", resume=False)),
        (CREATED, admitted("msg_1"), claimed(), released()),
    ],
    ids=["new", "only pending", "released"],
)
def test_an_idle_session_has_nothing_to_interrupt(events: tuple[SessionEvent, ...]) -> None:
    """C-11: no event, and the inbox stays as it is."""
    assert interrupt(given(*events)) == ()


@pytest.mark.parametrize(
    "events",
    [
        (CREATED, admitted("msg_1"), claimed()),
        RUNNING,
        (*RUNNING, CALLED, released("parked")),
    ],
    ids=["claimed", "in a turn", "parked on a call"],
)
def test_what_is_under_way_is_interrupted_once(events: tuple[SessionEvent, ...]) -> None:
    """C-12, C-16: a session with an owner or unsettled calls gets one durable interrupt; the inbox stays."""
    session = given(*events, admitted("msg_2"))

    outcome = interrupt(session)

    assert outcome == (InterruptRequested(),)
    after = then(session, *outcome)
    assert after.inbox.pending == session.inbox.pending
    assert interrupt(after) == ()


@pytest.mark.parametrize(
    "events",
    [
        (CREATED, admitted("msg_1")),
        (CREATED, admitted("msg_1"), claimed(), released("context-unavailable")),
        (CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), released("retry-later")),
        (CREATED, admitted("msg_1"), claimed(), released("over-budget")),
        (CREATED, ResumeRequested()),
    ],
    ids=["queued", "waits for its place", "waits for a timer", "over its budget", "resumed"],
)
def test_what_would_begin_by_itself_is_dropped_before_it_does(
    events: tuple[SessionEvent, ...],
) -> None:
    """C-12, C-16: nothing is open, so the session rests at once; the inbox stays, and no wake counts."""
    session = given(*events)

    outcome = interrupt(session)

    assert outcome == (InterruptRequested(),)
    after = then(session, *outcome)
    assert (after.execution.rested, after.execution.interrupted, after.execution.owed) == (
        "interrupted",
        False,
        False,
    )
    assert after.inbox.pending == session.inbox.pending
    assert is_at_rest(after)
    assert not wake_has_work(after)
    assert interrupt(after) == ()


def test_only_pending_input_that_nobody_asked_for_is_stirred() -> None:
    """A-21, A-23: an exact retry wakes the session for its pending input, and forces no turn."""
    only = given(CREATED, admitted("msg_1", resume=False))

    stirred = then(only, ResumeRequested(forced=False))

    assert request_work(only) == (ResumeRequested(forced=False),)
    assert (stirred.execution.owed, is_moving(stirred), request_work(stirred)) == (
        False,
        True,
        (),
    )
    assert request_work(given(CREATED)) == ()
    assert request_work(given(CREATED, admitted("msg_1"))) == ()


def test_a_budget_stirs_only_what_rests_over_one() -> None:
    """C-16: the inbox of an interrupted session waits, also after a change of the budget."""
    stopped = given(CREATED, admitted("msg_1"), InterruptRequested(), BudgetSet(cost=1.0))
    over = given(
        CREATED, BudgetSet(cost=1.0), admitted("msg_1"), claimed(), released("over-budget")
    )

    assert not is_moving(stopped)
    assert [is_moving(then(over, BudgetSet(cost=cost))) for cost in (0.5, 2.0)] == [False, True]


def test_a_waiter_gets_its_answer_when_the_whole_chain_is_at_rest() -> None:
    """C-07: the wait also covers a prompt that comes during the first turn."""
    turn = (promoted("msg_1"), dispatched(), step_started())
    first = given(CREATED, admitted("msg_1"), claimed(), *turn, admitted("msg_2"), step_ended())
    second = then(first, promoted("msg_2"), dispatched(), step_started(), step_ended())

    assert [is_at_rest(item) for item in (first, second, then(second, released()))] == [
        False,
        False,
        True,
    ]


def test_a_waiter_for_an_interrupted_session_learns_the_interrupt_only() -> None:
    """C-15: the session rests with the reason `interrupted`, and no failure is reported."""
    stopped = given(*RUNNING, InterruptRequested(), released("interrupted"))

    assert is_at_rest(stopped)
    assert explain(stopped).reason == "It rests: somebody interrupted it."


def test_an_interrupt_after_a_newer_prompt_drops_that_too() -> None:
    """C-13: input that came during the cleanup wakes the session, unless a second interrupt follows."""
    session = given(*RUNNING, InterruptRequested(), admitted("msg_2"))

    assert interrupt(session) == (InterruptRequested(),)


def test_an_interrupt_closes_every_ask_and_says_what_it_did() -> None:
    """C-12: an idle session has nothing to stop, but its question is answered."""
    question = QuestionAsked(request=QuestionRequest(id="que_1", session_id="ses_1", questions=()))
    rejected = QuestionRejected(request_id="que_1")
    idle, running = given(CREATED, question), given(*RUNNING, question)

    closed, stopped = interrupt(idle), interrupt(running)

    assert closed == (rejected,)
    assert interrupt_outcome(then(idle, *closed), closed) == "idle"
    assert stopped == (rejected, InterruptRequested())
    assert interrupt_outcome(then(running, *stopped), stopped) == "stopping"


def test_an_interrupt_of_work_that_has_not_begun_drops_it() -> None:
    """C-16: nothing is open, so the session rests at once."""
    session = given(CREATED, admitted("msg_1"))

    events = interrupt(session)

    assert interrupt_outcome(then(session, *events), events) == "dropped"


def test_a_resume_answers_the_question_whether_to_continue() -> None:
    """P-01: the question that no call waits for is closed."""
    question = QuestionAsked(request=QuestionRequest(id="que_1", session_id="ses_1", questions=()))

    events = resume(given(CREATED, question))

    assert events == (QuestionRejected(request_id="que_1"), ResumeRequested())


@pytest.mark.parametrize(
    ("reason", "limits", "goes_on"),
    [
        ("over-budget", Budget(2.0, None), True),
        ("over-budget", Budget(0.5, None), False),
        ("idle", Budget(2.0, None), False),
    ],
)
def test_a_raised_budget_lets_a_session_go_on_that_rests_over_it(
    reason: RestReason, limits: Budget, *, goes_on: bool
) -> None:
    before = given(CREATED, BudgetSet(cost=1.0), admitted("msg_1"), claimed(), released(reason))

    assert budget_lets_go_on(before, limits) is goes_on


def test_resume_forces_one_turn_of_an_idle_session() -> None:
    """C-23, B-17: a resume takes a turn without pending input and without history."""
    session = given(CREATED)

    outcome = resume(session)

    assert outcome == (ResumeRequested(),)
    assert then(session, *outcome).execution.owed


@pytest.mark.parametrize(
    "events",
    [
        RUNNING,
        (*RUNNING, CALLED, released("parked")),
        (CREATED, admitted("msg_1")),
        (CREATED, admitted("msg_1"), claimed()),
        (CREATED, ResumeRequested()),
    ],
    ids=["in a turn", "parked on a call", "a wake is out", "claimed", "asked before"],
)
def test_resume_joins_what_is_under_way(events: tuple[SessionEvent, ...]) -> None:
    """C-02, C-03: no second turn is forced."""
    assert resume(given(*events)) == ()


@pytest.mark.parametrize(
    "events",
    [
        (*RUNNING, InterruptRequested()),
        (CREATED, admitted("msg_1", resume=False)),
        (CREATED, promoted("msg_1"), claimed(), released("failed")),
        (CREATED, promoted("msg_1"), claimed(), released("retry-later")),
        (CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), released("held")),
    ],
    ids=["cleaning up", "only admitted", "failed", "waiting for a timer", "held"],
)
def test_resume_is_written_when_no_turn_would_come_by_itself(
    events: tuple[SessionEvent, ...],
) -> None:
    """C-14, B-23: after an interrupt or a failure only an explicit run continues."""
    assert resume(given(*events)) == (ResumeRequested(),)


def test_a_compaction_is_asked_for_once() -> None:
    """C-25: a repeated request changes nothing until the compaction has ended."""
    session = given(CREATED)

    outcome = compact(session)

    assert outcome == (CompactionRequested(),)
    assert compact(then(session, *outcome)) == ()


def test_a_budget_is_set_and_lifted() -> None:
    """An absent limit is no limit; the same limits again write no event."""
    session = given(CREATED, BudgetSet(cost=1.5, tokens=100))

    assert set_budget(session, Budget(1.5, 100)) == ()
    assert set_budget(session, Budget(2.0, None)) == (BudgetSet(cost=2.0),)
    assert set_budget(given(CREATED), Budget()) == ()


@pytest.mark.parametrize(
    ("before", "after", "raised"),
    [
        (Budget(1, 10), Budget(2, 10), True),
        (Budget(1, 10), Budget(1, None), True),
        (Budget(1, 10), Budget(1, 10), False),
        (Budget(1, 10), Budget(0.5, 9), False),
        (Budget(), Budget(1, 1), False),
    ],
)
def test_only_a_higher_or_lifted_limit_is_a_reason_to_go_on(
    before: Budget, after: Budget, *, raised: bool
) -> None:
    assert after.exceeds(before) is raised


@pytest.mark.parametrize(
    ("events", "rests"),
    [
        ((CREATED,), True),
        ((CREATED, admitted("msg_1", resume=False)), True),
        ((CREATED, admitted("msg_1")), False),
        ((CREATED, ResumeRequested()), False),
        (RUNNING, False),
        ((*RUNNING, CALLED, released("parked")), False),
        ((CREATED, admitted("msg_1"), claimed(), released("failed")), True),
    ],
    ids=["new", "only admitted", "woken", "resumed", "in a turn", "parked on a call", "failed"],
)
def test_a_session_rests_when_nothing_happens_unless_somebody_asks(
    events: tuple[SessionEvent, ...], *, rests: bool
) -> None:
    """C-25: the session has no owner, no open request and no unsettled call."""
    assert is_at_rest(given(*events)) is rests
