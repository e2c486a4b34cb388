"""Sub-agents: one session per call, found again after a crash, answered when it rests."""

from dataclasses import replace

from hypothesis import given as having
from hypothesis import strategies as st
from immutables import Map
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
    ChildFinished,
    InterruptRequested,
    QuestionReplied,
    SessionEvent,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolFailed,
    ToolInputStarted,
)
from fairlead_schema.ids import SessionId
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent
from fairlead_session.calls.child_ids import TASK, child_of, first_prompt
from fairlead_session.calls.lifecycle import Failed, Succeeded, settle
from fairlead_session.calls.subagents import (
    SILENT,
    awaited_children,
    call_of_child,
    child_outcome,
    count_children,
    next_unread,
    uncounted_children,
)
from fairlead_session.execution.budget import TenantUsage, exceeded_limit, remaining_budget
from fairlead_session.execution.recovery import settle_attempt as crash
from fairlead_session.execution.recovery import stop_open_work
from fairlead_session.explain import explain
from fairlead_session.fold.calls import find_call
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget

CHILD = "ses_1"
ASKED = first_prompt(CHILD)


def called(call_id: str, tool: str = TASK) -> ToolCalled:
    return ToolCalled(
        assistant_message_id="msg_a", call_id=call_id, tool=tool, input={}, provider=Executor()
    )


def parent(*calls: ToolCalled) -> Session:
    opening = (admitted("msg_1"), claimed(), INITIALISED, promoted("msg_1"))
    inputs = (
        ToolInputStarted(assistant_message_id="msg_a", call_id=call.call_id, name=call.tool)
        for call in calls
    )
    return given(CREATED, *opening, dispatched(), step_started(), *inputs, *calls)


def text_events(text: str, assistant: str = "msg_a") -> tuple[SessionEvent, ...]:
    return (
        TextStarted(assistant_message_id=assistant, text_id="t"),
        TextEnded(assistant_message_id=assistant, text_id="t", text=text),
    )


def working(*events: SessionEvent) -> Session:
    opening = (admitted(ASKED), claimed(), INITIALISED, promoted(ASKED))
    return given(CREATED, *opening, dispatched(), step_started(), *events)


@having(st.lists(st.tuples(*[st.text(max_size=8)] * 3), unique=True, max_size=20))
def test_every_call_has_its_own_session_for_ever(calls: list[tuple[str, str, str]]) -> None:
    """A crash between the call and its session's creation makes no second one."""
    keys = {child_of(f"ses_{call_id}", f"msg_{two}", f"c{three}") for call_id, two, three in calls}
    again = {child_of(f"ses_{call_id}", f"msg_{two}", f"c{three}") for call_id, two, three in calls}
    plain = {tuple(part.replace("\n", "") for part in call) for call in calls}
    assert keys == again
    assert len(keys) >= len(plain)


def test_a_session_knows_whom_it_waits_for() -> None:
    """Only unsettled calls of the one tool wait for a session."""
    session = parent(called("c1"), called("c2", "bash"), called("c3"))
    first, last = (child_of("ses_1", "msg_a", call_id) for call_id in ("c1", "c3"))
    assert awaited_children(session) == (first, last)
    waiting = call_of_child(session, last)
    assert waiting is not None
    assert waiting.call_id == "c3"
    error = ErrorInfo(message="no")
    failed = ToolFailed(
        assistant_message_id="msg_a", call_id="c1", error=error, provider=Executor()
    )
    assert awaited_children(then(session, failed)) == (last,)
    assert call_of_child(session, "ses_other") is None


def test_a_session_at_work_has_no_answer_yet() -> None:
    assert child_outcome(given(CREATED)) is None
    assert child_outcome(given(CREATED, admitted(ASKED))) is None
    assert child_outcome(working(*text_events("half"))) is None


def test_its_last_words_are_the_answer() -> None:
    """The text of the newest message that has one; earlier steps were on the way there."""
    child = working(
        *text_events("first"), step_ended(), dispatched("msg_b", 2), step_started("msg_b")
    )
    child = then(child, *text_events("the answer", "msg_b"), step_ended("msg_b"), released())
    outcome = child_outcome(child)
    assert isinstance(outcome, Succeeded)
    assert outcome.content == (TextContent(text="the answer"),)
    assert outcome.structured == {"sessionID": CHILD}


def test_a_silent_answer_says_so() -> None:
    outcome = child_outcome(working(step_ended(), released()))
    assert isinstance(outcome, Succeeded)
    assert outcome.content == (TextContent(text=SILENT),)


def test_a_child_that_stopped_fails_its_call() -> None:
    """The parent goes on with the reason instead of waiting for a person."""
    failed = child_outcome(working(*text_events("a"), step_ended(), released("turn-limit")))
    assert failed is not None
    assert isinstance(failed, Failed)
    assert "turn-limit" in failed.message
    stopped = working(InterruptRequested(), released("interrupted"))
    assert isinstance(child_outcome(stopped), Failed)


def test_a_child_whose_crash_a_person_decides_about_has_no_answer_yet() -> None:
    """C-24: under the policy `ask` it may go on, and then its answer still finds its call."""
    child = working()
    assert child.turn.attempt is not None
    child = then(
        child,
        *crash(child, child.turn.attempt, "ask", "que_1"),
        released("held"),
    )
    assert child_outcome(child) is None

    stopped = then(child, QuestionReplied(request_id="que_1", answers=(("Stop",),)))
    assert isinstance(child_outcome(stopped), Failed)


def test_a_session_that_waits_for_another_says_for_which() -> None:
    """C-20: the explanation names the session to look at next."""
    parked = then(parent(called("c1"), called("c2", "bash")), released("parked"))
    explanation, child = explain(parked), child_of("ses_1", "msg_a", "c1")

    assert (explanation.state, explanation.code) == ("waiting", "session")
    assert explanation.reason == f"It waits for the sub-agent {child}, the tool bash."
    assert explanation.waiting_on is not None
    assert [(item.kind, item.id) for item in explanation.waiting_on] == [
        ("session", child),
        ("tool", "c2"),
    ]


def test_what_is_used_below_counts_above() -> None:
    """A budget reaches the tree: the settlement of the call adds what the child and its own used."""
    used = Tokens(input=60, output=40)
    child = working(*text_events("a"), step_ended(cost=0.5, tokens=used), released())
    child = then(child, ChildFinished(session_id="ses_2", cost=0.25, tokens=50))
    above = then(parent(called("c1")), BudgetSet(cost=1.0, tokens=200))
    call = find_call(above, "msg_a", "c1")
    outcome = child_outcome(child)
    assert call is not None
    assert outcome is not None
    after = then(above, *settle(above, call, outcome))
    assert (after.usage.children.cost, after.usage.children.tokens) == (0.75, 150)
    assert remaining_budget(after) == Budget(0.25, 50)
    assert exceeded_limit(after, TenantUsage()) is None
    more = then(after, ChildFinished(session_id="ses_3", cost=0.0, tokens=50))
    assert exceeded_limit(more, TenantUsage()) == "the session has used 200 of 200 tokens"
    assert remaining_budget(more) == Budget(0.25, 0)
    assert remaining_budget(replace(more, usage=replace(more.usage, budget=Budget()))) == Budget()


def test_a_stream_that_is_over_is_paid_for_before_its_step_ends() -> None:
    """A sub-agent is made while its parent's step waits for it: what that has used is gone."""
    above = then(parent(called("c1")), BudgetSet(tokens=100))
    assert above.turn.attempt is not None
    finished = AttemptFinished(
        attempt_id=above.turn.attempt.attempt_id,
        assistant_message_id="msg_a",
        finish="tool-calls",
        cost=0.5,
        tokens=Tokens(input=60, output=10),
    )

    assert remaining_budget(above) == Budget(tokens=100)
    assert remaining_budget(then(above, finished)) == Budget(tokens=30)


def interrupted(session: Session) -> Session:
    stopping = then(session, InterruptRequested())
    return then(stopping, *stop_open_work(stopping), released("interrupted"))


def named(session_id: str, *, cost: float, tokens: int) -> Session:
    """A session that was stopped after one step."""
    used = Tokens(input=tokens)
    stopped = working(*text_events("a"), step_ended(cost=cost, tokens=used), InterruptRequested())
    return replace(then(stopped, released("interrupted")), id=session_id)


def test_what_an_interrupted_child_used_counts_above() -> None:
    """The call was settled without its child: a later look adds the usage of the child, once."""
    below = child_of("ses_1", "msg_a", "c1")
    waiting = parent(called("c1"), called("c2", "bash"))
    assert (waiting.usage.children.uncounted, uncounted_children(waiting)) == ((below,), ())
    above = interrupted(waiting)
    assert uncounted_children(above) == (below,)
    assert next_unread(uncounted_children(above), {}) == below

    stopped = named(below, cost=0.5, tokens=100)
    counts = count_children(above, {below: stopped})

    assert counts == (ChildFinished(session_id=below, cost=0.5, tokens=100),)
    after = then(above, *counts)
    assert (after.usage.children.cost, after.usage.children.tokens, uncounted_children(after)) == (
        0.5,
        100,
        (),
    )


def test_a_child_that_still_stops_is_counted_when_it_rests() -> None:
    above = interrupted(parent(called("c1")))
    (below,) = uncounted_children(above)
    assert count_children(above, {below: replace(working(), id=below)}) == ()


def test_a_child_that_was_never_made_is_looked_for_once() -> None:
    above = interrupted(parent(called("c1")))
    (below,) = uncounted_children(above)
    after = then(above, *count_children(above, {below: Session(id=below)}))
    assert (after.usage.children.cost, uncounted_children(after)) == (0.0, ())


def prompted(child: Session, session_id: SessionId) -> Session:
    """The child, as if the prompt of its call were its first."""
    admissions = Map({first_prompt(session_id): child.inbox.admissions[ASKED]})
    return replace(child, inbox=replace(child.inbox, admissions=admissions))


def test_a_child_that_answered_is_not_counted_again() -> None:
    above = parent(called("c1"))
    below = child_of("ses_1", "msg_a", "c1")
    child = replace(working(*text_events("a"), step_ended(cost=0.5), released()), id=below)
    child = prompted(child, below)
    call, outcome = find_call(above, "msg_a", "c1"), child_outcome(child)
    assert call is not None
    assert outcome is not None
    after = then(above, *settle(above, call, outcome))
    assert (after.usage.children.cost, uncounted_children(after)) == (0.5, ())


def test_what_is_owed_deeper_below_counts_too() -> None:
    """A child that was stopped takes no turn any more in which it could count its own."""
    above = interrupted(parent(called("c1")))
    (below,) = uncounted_children(above)
    deepest = child_of(below, "msg_a", "c9")
    child = named(below, cost=0.5, tokens=100)
    children = replace(child.usage.children, uncounted=(deepest,))
    child = replace(child, usage=replace(child.usage, children=children))
    assert next_unread([below], {below: child}) == deepest
    sessions = {below: child, deepest: named(deepest, cost=0.25, tokens=11)}
    assert next_unread([below], sessions) is None

    assert count_children(above, sessions) == (
        ChildFinished(session_id=below, cost=0.75, tokens=111),
    )
    alone = prompted(child, below)
    outcome = child_outcome(alone, sessions)
    assert isinstance(outcome, Failed)
    assert outcome.facts == (ChildFinished(session_id=below, cost=0.75, tokens=111),)
