"""A turn costs as much in a long session as in a short one, counted in calls of functions, not in time."""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    admitted,
    claimed,
    dispatched,
    given,
    released,
    sample,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    StepFailed,
    TextEnded,
    TextStarted,
    ToolFailed,
    ToolInputStarted,
)
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.compaction.compaction import (
    CompactionPolicy,
    FittingRequest,
    Window,
    fit,
)
from fairlead_session.fold.snapshot import is_snapshot_due
from fairlead_session.input.promotion import eligible_inputs
from fairlead_session.next_move import next_move
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, prepare_turn
from fairlead_session.turn.lowered_history import LoweredHistory
from fairlead_session.turn.prefix import expected_cached_tokens, prefix
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.stream_calls import Offer

IDENTITY = ModelIdentity(MODEL, "fast-1", system="Be careful.")
POLICY = CompactionPolicy(
    auto=True,
    buffer=1000,
    keep_tokens=1000,
    summary_tokens=1000,
    excerpt=1000,
    prune_turns=10,
    prune_bytes=1000,
    calibrate=True,
)
ROOM = Window(context=100_000_000, output=1000)
OFFER = Offer("build", {})
SAMPLE = sample()
IDS = TurnIds("att_1", "msg_unused", "msg_unused")


def take_turn(session: Session, known: LoweredHistory | None) -> tuple[Session, LoweredHistory]:
    """What the core does in a turn: fold its events, decide, lower, measure and compare."""
    number = session.seq
    user, answer = f"msg_{number}", f"msg_{number}_a"
    session = then(session, admitted(user))
    next_move(session)
    session = then(session, claimed(session.execution.generation + 1))
    session = then(session, *prepare_turn(session, eligible_inputs(session), SAMPLE, IDS, known))
    fitting = fit(session, IDENTITY, OFFER, POLICY, ROOM, known)
    assert isinstance(fitting, FittingRequest)
    sent = prefix(fitting.request, fitting.history)
    expected_cached_tokens(session, sent, "build", MODEL)
    session = then(
        session,
        dispatched(answer),
        step_started(answer),
        TextStarted(assistant_message_id=answer, text_id="t"),
        TextEnded(assistant_message_id=answer, text_id="t", text="calm"),
        step_ended(answer),
        released(generation=session.execution.generation),
    )
    next_move(session)
    return session, fitting.history


def count_calls(act: Callable[[], object]) -> int:
    """How many calls, of Python and of C, something makes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def test_a_turn_of_a_session_of_5000_events_makes_as_many_calls_as_an_early_one() -> None:
    """Item by item work over the history would make thousands of calls more."""
    session, known = take_turn(given(CREATED, INITIALISED), None)
    counts: dict[int, int] = {}
    while session.seq < 5000:
        if 50 < session.seq < 150 or session.seq > 4900:
            counts[session.seq] = count_calls(partial(take_turn, session, known))
        session, known = take_turn(session, known)

    early = [calls for seq, calls in counts.items() if seq < 150]
    late = [calls for seq, calls in counts.items() if seq > 4900]
    assert max(late) <= 1.3 * min(early)


def test_snapshots_cost_an_event_as_much_in_a_long_session() -> None:
    """A snapshot is as large as its session. Of each event, at most nine are written in all."""
    every = 200
    places = [
        seq for seq in range(1, 20_000) if is_snapshot_due(opened=seq - 1, seq=seq, every=every)
    ]

    assert places[:8] == [200, 400, 600, 800, 1000, 1200, 1400, 1600]
    for count, place in enumerate(places, start=1):
        assert sum(places[:count]) <= 9 * place
    gaps = [after - before for before, after in pairwise(places)]
    assert all(gap <= max(every, place / 8) for gap, place in zip(gaps, places, strict=False))


def test_a_drain_over_several_places_leaves_one_snapshot() -> None:
    assert is_snapshot_due(opened=0, seq=1000, every=200)
    assert not is_snapshot_due(opened=1000, seq=1199, every=200)
    assert is_snapshot_due(opened=1199, seq=1200, every=200)


def test_a_call_that_was_abandoned_since_the_last_request_is_closed() -> None:
    """An earlier boundary has closed what stood before it, and nothing behind it."""
    session, known = take_turn(given(CREATED, INITIALISED), None)
    opened = then(
        session,
        dispatched("msg_cut"),
        step_started("msg_cut"),
        ToolInputStarted(assistant_message_id="msg_cut", call_id="c1", name="read"),
        StepFailed(assistant_message_id="msg_cut", error=ErrorInfo(message="cut")),
    )

    events = prepare_turn(opened, (), SAMPLE, IDS, known)

    assert [(event.type, event.call_id) for event in events if isinstance(event, ToolFailed)] == [
        ("tool.failed", "c1")
    ]
    assert events == prepare_turn(opened, (), SAMPLE, IDS)
