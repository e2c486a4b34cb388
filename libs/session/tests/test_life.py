"""Whole lives of sessions: inputs at any moment, crashes at any moment, and what always holds."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import CREATED, DEEP, MODEL, PROPERTY, observed, recorded, sample

from fairlead_schema.context import ContextSample
from fairlead_schema.events import (
    AttemptDispatched,
    AttemptOverflowed,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
    ShellRequested,
    StepEnded,
    StepFailed,
)
from fairlead_schema.events.compaction import CompactionReason
from fairlead_schema.message import AssistantMessage
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_schema.provider.events import ProviderUsage, StepFinish, TextChunk, TextEnd, TextStart
from fairlead_schema.record import Commit, Recorded, decode, encode
from fairlead_session.calls.lifecycle import Begin, Settle, Succeeded, begin, settle
from fairlead_session.compaction.compaction import TRIES_MAX
from fairlead_session.compaction.overflow import fail_overflowed_step
from fairlead_session.execution.ownership import OwnedByOther, claim, owns, release
from fairlead_session.execution.recovery import settle_attempt
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.input.admission import admit
from fairlead_session.input.pending_shells import start_shells
from fairlead_session.next_move import (
    AwaitCalls,
    CommitRevert,
    Compact,
    DrainLimits,
    EndStep,
    InitialiseContext,
    Rest,
    ServeMove,
    ServeRevert,
    SettleInterrupted,
    StartShells,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
    wake_has_work,
)
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, begin_epoch, dispatch, prepare_turn
from fairlead_session.turn.epoch import Blocked
from fairlead_session.turn.step_end import end_step
from fairlead_session.turn.stream import TurnStream
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_session.verify.verify import verify

STREAM = (
    TextStart("t"),
    TextChunk("t", "hello"),
    TextEnd("t"),
    StepFinish("stop", ProviderUsage(input=1, output=1)),
)
PATIENT = DrainLimits(recoveries_max=1_000)

moments = st.sampled_from(
    ["go", "go", "go", "steer", "queue", "news", "crash", "compact", "overflow", "shell"]
)
plans = st.lists(moments, max_size=40)
deep_plans = st.lists(moments, max_size=150)


class Crash(Exception):
    """The runner is gone; whatever it had not written never happened."""


class Life:
    """One session with everybody who writes to it, driven by a plan of moments."""

    def __init__(self, plan: list[str], limits: DrainLimits = PATIENT) -> None:
        self.log: list[Recorded] = []
        self.session = Session(id="ses_1")
        self.drains = 0
        self._plan: Iterator[str] = iter(plan)
        self._size = self._left = len(plan)
        self._limits = limits
        self._inputs = 0
        self._day = 0
        self._overflows = False
        self._write(CREATED)

    def live(self) -> None:
        """Drain again and again, until the plan is over and nobody has to move."""
        while self._left or is_moving(self.session):
            self.drains += 1
            assert self.drains <= self._size + 1, "only a moment can keep a session from rest"
            try:
                self._moment()
                if self.session.execution.owner is not None or wake_has_work(self.session):
                    self._drain()
            except Crash:
                continue

    def _drain(self) -> None:
        runner = f"run_{self.drains}"
        claimed = claim(self.session, runner, "gone")
        assert not isinstance(claimed, OwnedByOther)
        self._write(*claimed)
        generation = self.session.execution.generation
        while True:
            assert owns(self.session, runner, generation)
            self._moment()
            before = self.session.seq
            if self._rested():
                return
            assert self.session.seq > before, "every move that is no rest writes something"

    def _rested(self) -> bool:
        move = next_move(self.session, self._limits)
        match move:
            case SettleInterrupted(attempt=attempt):
                self._write(*settle_attempt(self.session, attempt, "auto", "que_1"))
            case InitialiseContext():
                events = begin_epoch(self._seen())
                assert not isinstance(events, Blocked)
                self._write(*events)
            case TakeTurn():
                self._turn(move)
            case EndStep(attempt=attempt):
                self._write(*end_step(attempt))
            case Compact():
                self._compact(move)
            case Rest(reason=reason):
                self._write(release(self.session, reason))
                return True
            case StartShells(shells=shells):
                self._write(*start_shells(shells))
            case AwaitCalls(calls=(call, *_)):
                self._run_command(call)
            case Stop() | AwaitCalls() | ServeRevert() | ServeMove() | CommitRevert():
                raise AssertionError(
                    "nobody interrupts or reverts these lives, and their calls are open"
                )
        return False

    def _turn(self, move: TakeTurn) -> None:
        ids = TurnIds(*(f"{kind}_{self.session.seq}" for kind in ("att", "msg_a", "msg_s")))
        attempt = dispatch(
            ids, agent="build", model=MODEL, step=move.step, request_hash="", estimate=1
        )
        self._write(*prepare_turn(self.session, move.inputs, self._seen(), ids), attempt)
        if self._overflows and not self.session.compaction.overflowed:
            self._overflows = False
            self._write(AttemptOverflowed(attempt_id=ids.attempt_id, message="too long"))
            return
        stream = TurnStream(ids.assistant_message_id, "build", MODEL)
        for event in STREAM:
            self._moment()
            self._write(*stream.receive(event)[0])
        self._write(*stream.complete())

    def _run_command(self, call: UnsettledCall) -> None:
        """A worker begins the command of a person; after a death another one settles it."""
        key = (call.assistant_message_id, call.call_id)
        begun = begin(self.session, *key, f"wkr_{self.drains}", "gone")
        if isinstance(begun, Settle):
            self._write(begun.event)
            return
        assert isinstance(begun, Begin)
        self._write(begun.event)
        self._moment()
        self._write(*settle(self.session, begun.started_call, Succeeded()))

    def _compact(self, move: Compact) -> None:
        """The model always has a summary; a life may end while it is written."""
        asked, attempt = move.cause == "manual", self.session.turn.attempt
        reason: CompactionReason = "manual" if asked else "auto"
        if self.session.compaction.tries < TRIES_MAX:
            id_ = f"msg_c{self.session.seq}"
            self._write(CompactionStarted(message_id=id_, reason=reason))
            self._moment()
            self._write(CompactionEnded(message_id=id_, reason=reason, text="sum", recent=""))
        elif asked:
            self._write(CompactionFailed(reason="manual", outcome="failed", message="in vain"))
        elif attempt is not None:
            self._write(*fail_overflowed_step(self.session))

    def _moment(self) -> None:
        """Whatever happens in the world between two writes."""
        self._left = max(0, self._left - 1)
        match next(self._plan, "go"):
            case "steer":
                self._admit("steer")
            case "queue":
                self._admit("queue")
            case "news":
                self._day += 1
            case "shell":
                self._inputs += 1
                ids = {"message_id": f"msg_{self._inputs}", "call_id": f"call_{self._inputs}"}
                self._write(ShellRequested(**ids, command="make", agent="build"))
            case "compact" if not self.session.execution.compaction_requested:
                self._write(CompactionRequested())
            case "overflow":
                self._overflows = True
            case "crash":
                raise Crash
            case _:
                pass

    def _admit(self, delivery: Delivery) -> None:
        self._inputs += 1
        outcome = admit(self.session, f"msg_{self._inputs}", Prompt(text="hi"), delivery)
        assert isinstance(outcome, tuple)
        self._write(*outcome)

    def _seen(self) -> ContextSample:
        return sample(observed("core/date", self._day))

    def _write(self, *events: SessionEvent) -> None:
        for entry in recorded(*events, after=self.session.seq):
            self.log.append(entry)
            self.session = evolve(self.session, entry)


def lived(plan: list[str], limits: DrainLimits = PATIENT) -> Life:
    life = Life(plan, limits)
    life.live()
    return life


def replayed(log: list[Recorded], session: Session | None = None) -> Session:
    session = session or Session(id="ses_1")
    for entry in log:
        session = evolve(session, entry)
    return session


def check_promotions(life: Life) -> None:
    admitted = [entry.event for entry in life.log if isinstance(entry.event, PromptAdmitted)]
    promoted = [
        entry.event.message_id for entry in life.log if isinstance(entry.event, PromptPromoted)
    ]
    # A failure leaves what is queued behind it until somebody asks again.
    pending = [item.message_id for item in life.session.inbox.pending]
    assert Counter([*promoted, *pending]) == Counter(event.message_id for event in admitted)
    releases = [entry.event for entry in life.log if isinstance(entry.event, ExecutionReleased)]
    assert not pending or any(release.reason == "failed" for release in releases)
    for kind in ("steer", "queue"):
        ids = [event.message_id for event in admitted if event.delivery == kind]
        assert [id_ for id_ in [*promoted, *pending] if id_ in ids] == ids


def check_attempts(life: Life) -> None:
    dispatches = sum(isinstance(entry.event, AttemptDispatched) for entry in life.log)
    answers = sum(isinstance(entry.event, StepEnded) for entry in life.log)
    retries = sum(isinstance(entry.event, ExecutionRecovered) for entry in life.log)
    overflows = sum(isinstance(entry.event, AttemptOverflowed) for entry in life.log)
    assert dispatches == answers + retries + overflows
    assert verify(life.log) == []
    assert find_unfinished_work(life.log) == ()
    lines = [line.message for line in life.session.transcript.lines]
    assert all(
        message.time.completed is not None
        for message in lines
        if isinstance(message, AssistantMessage)
    )


@PROPERTY
@given(plans)
def test_every_input_is_promoted_exactly_once_by_draining(plan: list[str]) -> None:
    """B-06, B-11: whatever crashes, each input becomes history once, in order within its kind."""
    check_promotions(lived(plan))


@PROPERTY
@given(plans)
def test_no_queued_input_overtakes_a_steer(plan: list[str]) -> None:
    """B-12, B-13: when a queued input is promoted, no steer was pending."""
    session = Session(id="ses_1")
    for entry in lived(plan).log:
        if isinstance(entry.event, PromptPromoted):
            promoted = session.inbox.admissions[entry.event.message_id]
            pending = {item.delivery for item in session.inbox.pending}
            assert promoted.delivery == "steer" or "steer" not in pending
        session = evolve(session, entry)


@PROPERTY
@given(plans)
def test_every_attempt_is_answered_or_retried_once(plan: list[str]) -> None:
    """P-01, I-08: no attempt has two outcomes, and no assistant message stays open."""
    check_attempts(lived(plan))


@PROPERTY
@given(plans)
def test_a_turn_starts_no_more_than_two_compactions_whatever_crashes(plan: list[str]) -> None:
    """G-15, G-32: the count is in the log, so deaths during a summary cannot loop."""
    tries = 0
    for entry in lived(plan).log:
        match entry.event:
            case CompactionStarted():
                tries += 1
                assert tries <= TRIES_MAX
            case StepEnded() | StepFailed() | CompactionEnded() | CompactionFailed():
                tries = 0
            case _:
                pass


@PROPERTY
@given(plans)
def test_each_generation_has_one_owner(plan: list[str]) -> None:
    """P-02: generations count up by one, and only the last owner releases."""
    generation = 0
    for entry in lived(plan).log:
        match entry.event:
            case ExecutionClaimed():
                generation += 1
                assert entry.event.generation == generation
            case ExecutionReleased():
                assert entry.event.generation == generation
            case _:
                pass


@PROPERTY
@given(plans)
def test_a_session_left_alone_comes_to_rest(plan: list[str]) -> None:
    """B-16: with the default budget too, every life ends at rest with nothing in motion."""
    life = lived(plan, DrainLimits())

    assert isinstance(next_move(life.session), Rest)
    assert not is_moving(life.session)


@PROPERTY
@given(plans, st.data())
def test_a_snapshot_and_its_tail_equal_full_replay(plan: list[str], data: st.DataObject) -> None:
    """D-08: from any point of a life, through bytes or not, the same session comes out."""
    life = lived(plan)
    cut = data.draw(st.integers(0, len(life.log)))

    prefix = replayed(life.log[:cut])

    assert replayed(life.log) == life.session
    assert replayed(life.log[cut:], prefix) == life.session
    assert replayed(life.log[cut:], thaw(freeze(prefix))) == life.session


@PROPERTY
@given(plans)
def test_a_life_read_back_from_the_logs_bytes_is_the_same(plan: list[str]) -> None:
    """D-08: replaying only durable events reproduces the session."""
    life = lived(plan)

    commits = [decode(encode(Commit("cmt_1", (entry,)))) for entry in life.log]

    assert replayed([event for commit in commits for event in commit.events]) == life.session


@pytest.mark.slow
@DEEP
@given(deep_plans)
def test_long_lives_hold_too(plan: list[str]) -> None:
    """B-06, B-11, P-01: the same at depth."""
    life = lived(plan)

    check_promotions(life)
    check_attempts(life)
    assert thaw(freeze(life.session)) == life.session
