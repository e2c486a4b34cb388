"""Calling: one worker at a time, one settlement for ever, `once` means once."""

from dataclasses import replace
from typing import TypeAlias

import pytest
from hypothesis import given as over
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    PROPERTY,
    claimed,
    dispatched,
    given,
    released,
    step_started,
    then,
)

from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    SessionPurged,
    TextStarted,
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.events.tools import NOBODY
from fairlead_schema.tools.content import Executor, RetryClass, TextContent
from fairlead_session.calls.lifecycle import (
    INTERRUPTED,
    WORKERS_DIED,
    Begin,
    Beginning,
    DeferredCall,
    Failed,
    LeaveToWorker,
    NotOpen,
    Settle,
    Succeeded,
    begin,
    defer,
    give_back,
    halt_reason,
    settle,
)
from fairlead_session.execution.ownership import ProcessLife
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_session.fold.calls import find_call
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session

DONE = Succeeded(structured={"ok": True}, content=(TextContent(text="ok"),))


def called(retry: RetryClass | None = "pure", *, call: str = "call_1") -> ToolCalled:
    return ToolCalled(
        assistant_message_id="msg_a",
        call_id=call,
        tool="probe",
        input={"key": "k"},
        provider=Executor(),
        retry=retry,
        revision="r1",
    )


def started(worker: str = "wkr_a", *, call: str = "call_1") -> ToolStarted:
    return ToolStarted(assistant_message_id="msg_a", call_id=call, worker=worker, generation=1)


def session(*events: SessionEvent) -> Session:
    return given(CREATED, claimed(), dispatched(), step_started(), *events)


def begin_call(
    session: Session, worker: str = "wkr_a", life: ProcessLife | None = None
) -> Beginning:
    return begin(session, "msg_a", "call_1", worker, life)


def only(session: Session) -> UnsettledCall:
    (call,) = session.calls
    return call


def test_a_call_begins_with_a_start_in_the_log() -> None:
    """E-01: what may run was called durably, and says who runs it under which generation."""
    now = session(called())

    decision = begin_call(now)

    assert isinstance(decision, Begin)
    assert decision.event == started()
    assert only(then(now, decision.event)) == decision.started_call


def test_a_call_the_log_does_not_know_is_gone() -> None:
    """E-01: a stale or forged request runs nothing."""
    assert begin_call(given(CREATED)) == NotOpen()
    assert begin_call(session()) == NotOpen()
    assert begin(session(called()), "msg_b", "call_1", "wkr_a", None) == NotOpen()
    assert begin(session(called()), "msg_a", "call_2", "wkr_a", None) == NotOpen()


@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
def test_a_settled_call_is_gone(retry: RetryClass) -> None:
    """E-20: a redelivery after the settlement runs nothing."""
    now = session(called(retry), started())

    after = then(now, *settle(now, only(now), DONE))

    assert begin_call(after) == NotOpen()
    assert begin_call(after, "wkr_b", "gone") == NotOpen()


def test_an_interrupted_session_starts_no_call() -> None:
    """E-16: the drain of the session settles the call."""
    assert begin_call(session(called(), InterruptRequested())) == NotOpen()
    assert begin_call(
        session(called("once"), started(), InterruptRequested()), "wkr_b", "gone"
    ) == (NotOpen())


@pytest.mark.parametrize("life", ["alive", None])
@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
def test_a_live_workers_call_is_left_to_it(retry: RetryClass, life: ProcessLife | None) -> None:
    """E-20: and so is one of whose worker nothing is known."""
    assert begin_call(session(called(retry), started()), "wkr_b", life) == LeaveToWorker("wkr_a")


@pytest.mark.parametrize("life", ["gone", "silent"])
@pytest.mark.parametrize("retry", ["pure", "idempotent"])
def test_what_may_run_again_is_begun_by_another_worker(
    retry: RetryClass, life: ProcessLife
) -> None:
    """E-20: the new start fences the old worker."""
    now = session(called(retry), started())

    decision = begin_call(now, "wkr_b", life)

    assert isinstance(decision, Begin)
    after = then(now, decision.event)
    assert settle(after, only(now), DONE) == ()
    assert settle(after, decision.started_call, DONE) != ()


@pytest.mark.parametrize(
    ("worker", "life"), [("wkr_b", "gone"), ("wkr_b", "silent"), ("wkr_a", None)]
)
@pytest.mark.parametrize("retry", ["once", None])
def test_a_once_call_of_a_dead_worker_settles_as_interrupted(
    retry: RetryClass | None, worker: str, life: ProcessLife | None
) -> None:
    """E-20: also when the worker itself no longer runs it, and when no class was declared."""
    now = session(called(retry), started())

    decision = begin_call(now, worker, life)

    assert isinstance(decision, Settle)
    assert isinstance(decision.event, ToolFailed)
    assert decision.event.error.message == INTERRUPTED_TOOL
    assert then(now, decision.event).calls == ()


@pytest.mark.parametrize("retry", ["pure", "idempotent"])
def test_a_call_is_settled_after_three_deaths_of_its_workers(retry: RetryClass) -> None:
    """B4, E-20: a call that ends its workers does not go through the whole pool."""
    now = session(called(retry))
    for worker in ("wkr_a", "wkr_b", "wkr_c"):
        decision = begin_call(now, worker, "gone")
        assert isinstance(decision, Begin)
        now = then(now, decision.event)

    decision = begin_call(now, "wkr_d", "gone")

    assert isinstance(decision, Settle)
    assert isinstance(decision.event, ToolFailed)
    assert decision.event.error.message == WORKERS_DIED.message
    assert begin_call(then(now, decision.event), "wkr_e", "gone") == NotOpen()


def test_a_worker_that_starts_its_own_call_again_did_not_die() -> None:
    """B4: only a change of the worker counts."""
    now = session(called("pure"), started(), started(), started(), started())

    assert only(now).starts == 1
    assert isinstance(begin_call(now, "wkr_b", "gone"), Begin)


def test_a_call_that_is_given_back_counts_no_death() -> None:
    """B4, E-20: the next worker starts the call at once."""
    now = session(called("pure"), started())

    back = then(now, *give_back(now, only(now)))

    assert (only(back).worker, only(back).starts) == (None, 0)
    assert isinstance(begin_call(back, "wkr_b", None), Begin)


def test_a_once_call_that_was_started_is_never_given_back() -> None:
    """E-20: not even by an event in the log."""
    now = session(called("once"), started())

    assert give_back(now, only(now)) == ()
    assert isinstance(begin_call(then(now, started(NOBODY)), "wkr_b", "gone"), Settle)


def test_a_settlement_carries_what_the_tool_returned() -> None:
    """E-03: the last one stirs a session that may be parked."""
    now = session(called(), started(), released("parked"))

    (event,) = settle(now, only(now), DONE)

    assert isinstance(event, ToolSucceeded)
    assert (event.structured, event.content) == ({"ok": True}, (TextContent(text="ok"),))
    assert then(now, event).execution.work_requested


def test_a_failure_keeps_progress_that_is_not_in_the_log() -> None:
    """E-28: the progress is written with the failure. A success replaces it."""
    now = session(called(), started())
    call, content = only(now), (TextContent(text="half"),)
    unwritten = ({"done": 5}, content)
    progressed = ToolProgressed(
        assistant_message_id="msg_a", call_id="call_1", structured={"done": 5}, content=content
    )

    failed = settle(now, call, Failed("boom"), unwritten)

    assert failed == (progressed, *settle(now, call, Failed("boom")))
    assert settle(now, call, DONE, unwritten) == settle(now, call, DONE)
    assert settle(then(now, *failed), call, Failed("boom"), unwritten) == ()


def test_a_call_that_never_ran_can_fail() -> None:
    """E-06: refused before it starts."""
    now = session(called())

    (event,) = settle(now, only(now), Failed("Unknown tool: probe"))

    assert isinstance(event, ToolFailed)
    assert event.error.message == "Unknown tool: probe"
    assert settle(then(now, started()), only(now), Failed("Unknown tool: probe")) == ()


def test_what_ends_a_run() -> None:
    """E-16: an interrupt, another's settlement, another's start; nothing else."""
    call = only(session(called(), started()))
    failed = settle(session(called(), started()), call, INTERRUPTED)[0]

    assert halt_reason(call, InterruptRequested()) == "interrupted"
    assert halt_reason(call, SessionPurged()) == "interrupted"
    assert halt_reason(call, failed) == "lost"
    assert halt_reason(call, started("wkr_b")) == "lost"
    assert halt_reason(call, started()) is None
    assert halt_reason(call, started("wkr_b", call="call_2")) is None
    assert halt_reason(call, TextStarted(assistant_message_id="msg_a", text_id="t")) is None


Step: TypeAlias = tuple[str, str, ProcessLife | None]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "settle", "interrupt", "rest", "claim"]),
        st.sampled_from(["wkr_a", "wkr_b", "wkr_c"]),
        st.sampled_from(["alive", "gone", "silent", None]),
    ),
    max_size=30,
)


@PROPERTY
@over(st.sampled_from(["pure", "idempotent", "once"]), STEPS)
def test_a_call_settles_at_most_once_and_once_starts_at_most_once(
    retry: RetryClass, steps: list[Step]
) -> None:
    """E-20: whatever workers believe of each other, and however stale what they hold is."""
    now, running, log = session(called(retry)), dict[str, UnsettledCall](), list[SessionEvent]()
    for kind, worker, life in steps:
        events = _events(now, running, (kind, worker, life))
        log.extend(events)
        now = then(now, *events)

    settled = sum(isinstance(event, ToolSucceeded | ToolFailed) for event in log)
    starts = sum(isinstance(event, ToolStarted) for event in log)
    assert settled <= 1
    assert settled == (find_call(now, "msg_a", "call_1") is None)
    assert retry != "once" or starts <= 1


def _events(
    now: Session, running: dict[str, UnsettledCall], step: Step
) -> tuple[SessionEvent, ...]:
    kind, worker, life = step
    match kind:
        case "begin":
            decision = begin_call(now, worker, life)
            if isinstance(decision, Begin):
                running[worker] = decision.started_call
            return (decision.event,) if isinstance(decision, Begin | Settle) else ()
        case "settle":
            return settle(now, running[worker], DONE) if worker in running else ()
        case "interrupt":
            return (InterruptRequested(),)
        case "rest":
            return (released(),) if now.execution.owner else ()
        case _:
            return (claimed(now.execution.generation + 1),)


def test_a_stale_copy_of_a_call_settles_nothing() -> None:
    """E-20: the worker in the log decides, not the worker in hand."""
    now = session(called(), started("wkr_b"))

    assert settle(now, replace(only(now), worker="wkr_a"), DONE) == ()
    assert settle(now, replace(only(now), worker=None), DONE) == ()


def deferred(until: int = 99) -> ToolDeferred:
    return ToolDeferred(assistant_message_id="msg_a", call_id="call_1", until=until)


@pytest.mark.parametrize("life", ["alive", "gone", "silent", None])
@pytest.mark.parametrize("retry", ["pure", "idempotent", "once"])
def test_a_call_left_in_a_queue_is_run_by_no_worker(
    retry: RetryClass, life: ProcessLife | None
) -> None:
    """E-20: a consumer of the queue settles the call, or its time runs out; a dead worker changes nothing."""
    now = session(called(retry), started(), deferred())

    assert begin_call(now, "wkr_b", life) == DeferredCall(only(now), 99)
    assert begin_call(now, "wkr_a", life) == DeferredCall(only(now), 99)


def test_a_call_left_in_a_queue_is_settled_once() -> None:
    """E-18: by who found it there; the worker that left it has no say any more."""
    before = session(called("once"), started())
    now = then(before, *defer(before, only(before), 99))

    assert settle(now, only(before), DONE) == ()
    after = then(now, *settle(now, only(now), DONE))

    assert (after.calls, settle(after, only(now), DONE)) == ((), ())
    assert halt_reason(only(now), deferred()) is None


def test_only_the_worker_that_runs_a_call_leaves_it_in_a_queue() -> None:
    """E-20: another start, or an outcome, came first."""
    before = session(called("pure"), started())
    moved = then(before, started("wkr_b"))

    assert defer(moved, only(before), 99) == ()
    assert defer(then(before, *settle(before, only(before), DONE)), only(before), 99) == ()
