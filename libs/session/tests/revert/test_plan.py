"""Which files a revert changes back."""

from typing import Any

from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    dispatched,
    given,
    promoted,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    RevertBegun,
    RevertCleared,
    RevertRequested,
    RevertStaged,
    SessionEvent,
    StepEnded,
    StepFailed,
    ToolCalled,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
)
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.tools.content import ErrorInfo, Executor
from fairlead_session.revert.plan import NO_SNAPSHOT, RevertPlan, StepSpan, finish, plan_revert
from fairlead_session.state.revert import FileTrees

STAGE = RevertRequested(action="stage", message_id="msg_1")
TALK = (CREATED, INITIALISED, promoted("msg_1"))


def step(
    id_: str, start: str | None, end: str | None, *, calls: bool = True
) -> tuple[SessionEvent, ...]:
    """A step with a call that was settled. Without an end it failed."""
    call: dict[str, Any] = {"assistant_message_id": id_, "call_id": f"call_{id_}"}
    executor = Executor(executed=False)
    called: tuple[SessionEvent, ...] = (
        ToolInputStarted(**call, name="bash"),
        ToolInputEnded(**call, text="{}"),
        ToolCalled(**call, tool="bash", input={}, provider=executor),
        ToolFailed(**call, error=ErrorInfo(message="no"), provider=executor),
    )
    ended: SessionEvent = StepFailed(assistant_message_id=id_, error=ErrorInfo(message="cut off"))
    if end is not None or start is None:
        ended = StepEnded(
            assistant_message_id=id_, finish="stop", cost=0, tokens=Tokens(), snapshot=end
        )
    begun = (dispatched(id_), step_started(id_, snapshot=start))
    return (*begun, *(called if calls else ()), ended)


def plan_of(*events: SessionEvent) -> RevertPlan | str:
    return plan_revert(given(*TALK, *events, STAGE))


def test_the_steps_after_the_boundary_change_back() -> None:
    """N-03: each step says which files it changed, the earliest first."""
    before = step("msg_0", "t0", "t1")
    session = given(CREATED, INITIALISED, *before, promoted("msg_1"))
    session = then(session, *step("msg_a", "t1", "t2"), *step("msg_b", "t2", "t3"), STAGE)

    assert plan_revert(session) == RevertPlan((StepSpan("t1", "t2"), StepSpan("t2", "t3")))


def test_a_step_that_changed_nothing_is_left_out() -> None:
    assert plan_of(*step("msg_a", "t1", "t1")) == RevertPlan()
    assert plan_of(*step("msg_a", "t1", "t2", calls=False)) == RevertPlan()


def test_a_step_that_was_cut_off_ends_where_the_next_one_begins() -> None:
    """N-03: an interrupted step changed files too. The last one ends at the files of now."""
    plan = plan_of(*step("msg_a", "t1", None), *step("msg_b", "t2", None))

    assert plan == RevertPlan((StepSpan("t1", "t2"), StepSpan("t2", None)))


def test_a_step_without_a_snapshot_cannot_change_back() -> None:
    """N-12: without git a revert of files is refused; the boundary alone can still move."""
    steps = step("msg_a", None, None)
    alone = RevertRequested(action="stage", message_id="msg_1", files=False)

    assert plan_of(*steps) == NO_SNAPSHOT
    assert plan_revert(given(*TALK, *steps, alone)) == RevertPlan()
    assert plan_of(*step("msg_a", None, None, calls=False)) == RevertPlan()


def test_files_false_takes_an_earlier_revert_back() -> None:
    """N-05: files of an earlier stage go back to the original tree."""
    staged = RevertStaged(revert=RevertState(message_id="msg_1", snapshot="t3", files=()))
    session = given(
        *TALK, *step("msg_a", "t1", "t2"), STAGE, RevertBegun(original="t3", target="t1"), staged
    )
    alone = then(session, RevertRequested(action="stage", message_id="msg_1", files=False))

    plan = plan_revert(alone)

    assert plan == RevertPlan((), FileTrees("t3", "t1"))
    assert isinstance(plan, RevertPlan)
    assert plan.changes_files


def test_a_finished_request_shows_the_boundary_and_the_first_tree() -> None:
    """N-06"""
    begun = given(*TALK, *step("msg_a", "t1", "t2"), STAGE, RevertBegun(original="t3", target="t1"))
    cleared = given(*TALK, RevertRequested(action="clear"))

    state = RevertState(message_id="msg_1", snapshot="t3", diff="-x", files=())
    assert finish(begun, "-x") == (RevertStaged(revert=state),)
    assert finish(cleared) == (RevertCleared(),)
