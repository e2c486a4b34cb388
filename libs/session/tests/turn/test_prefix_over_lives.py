"""The prefix over whole lives: with tools, updates, one pruning and compactions, byte for byte."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.compaction.test_pruning import called
from libs.session.tests.conftest import (
    CREATED,
    MODEL,
    PROPERTY,
    dispatched,
    given,
    observed,
    promoted,
    sample,
    step_ended,
    step_started,
    then,
)
from pydantic_core import to_json

from fairlead_schema.context import ContextSample
from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    SessionEvent,
    TextEnded,
    TextStarted,
)
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.tools.request import ToolInfo
from fairlead_session.compaction.compaction import (
    CompactionPlan,
    FittingRequest,
    Window,
    fit,
)
from fairlead_session.compaction.lifecycle import CompactionRun, end, start
from fairlead_session.state.session import Session
from fairlead_session.turn.boundary import TurnIds, begin_epoch, prepare_turn
from fairlead_session.turn.epoch import Blocked
from fairlead_session.turn.lowered_history import LoweredHistory
from fairlead_session.turn.prefix import broken_since_last_request, fingerprint, prefix
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.stream_calls import Offer
from fairlead_testing.compaction import DEFAULT_COMPACTION

IDENTITY = ModelIdentity(MODEL, "fast-1", system="Be careful.")
READ = ToolInfo(name="read", description="reads", input_schema={}, retry="pure", revision="read@1")
OFFER = Offer("build", {"read": READ}, 8)
POLICY = replace(
    DEFAULT_COMPACTION,
    buffer=100,
    keep_tokens=60,
    excerpt=80,
    prune_turns=1,
    prune_bytes=200,
    calibrate=False,
)
WINDOW = Window(context=1_000, output=100)

moments = st.sampled_from(["say", "large", "large", "small", "news", "vanish"])


class Story:
    """A session whose every request is compared with the one before it."""

    def __init__(self) -> None:
        self.day, self.number, self.silent = 0, 0, True
        events = begin_epoch(self._seen())
        assert not isinstance(events, Blocked)
        self.session = given(CREATED, *events)
        self.before: ModelRequest | None = None
        self.history: LoweredHistory | None = None
        self.seen = Counter[str]()
        self.anew = True
        self.pruned = 0

    def live(self, moment: str) -> None:
        self.day += moment == "news"
        self.silent = self.silent != (moment == "vanish")
        self.number += 1
        self.session = then(self.session, promoted(f"msg_{self.number}", "sail " * 20))
        if moment in {"large", "small"}:
            self._turn(*called(self.number, "x" * (600 if moment == "large" else 20)))
        id_ = f"msg_b{self.number}"
        text: dict[str, Any] = {"assistant_message_id": id_, "text_id": "t"}
        text_events = (TextStarted(**text), TextEnded(text="hey", **text))
        self._turn(dispatched(id_), step_started(id_), *text_events, step_ended(id_))

    def _turn(self, *events: SessionEvent) -> None:
        ready = self._ready()
        self._compare(ready)
        hashed = {"request_hash": fingerprint(ready.request)}
        self.session = then(self.session, events[0].model_copy(update=hashed), *events[1:])
        self.before, self.anew = ready.request, False

    def _ready(self) -> FittingRequest:
        """Cross the boundary, with whatever compaction that takes."""
        ids = TurnIds("att", "msg", f"msg_s{self.session.seq}")
        staged = then(self.session, *prepare_turn(self.session, (), self._seen(), ids))
        assert staged.epoch is not None
        assert self.session.epoch is not None
        self.anew = self.anew or staged.epoch.seq != self.session.epoch.seq
        fitting = fit(staged, IDENTITY, OFFER, POLICY, WINDOW, self.history)
        assert fitting == fit(staged, IDENTITY, OFFER, POLICY, WINDOW)
        if isinstance(fitting, FittingRequest):
            self.history = fitting.history
            pruned = () if fitting.pruned is None else (fitting.pruned,)
            self.session = then(staged, *pruned)
            return fitting
        self.session = self._compacted(staged, fitting)
        return self._ready()

    def _compacted(self, staged: Session, plan: CompactionPlan) -> Session:
        started = start(f"msg_c{staged.seq}", "auto")
        begun = then(staged, started)
        ended = end(begun, CompactionRun(started, plan, IDENTITY, POLICY), "They sail.")
        if not isinstance(ended, CompactionEnded):
            return then(begun, CompactionFailed(reason="auto", outcome="failed", message=ended.why))
        self.seen["compacted"] += 1
        self.anew, self.pruned = True, 0
        return then(begun, ended)

    def _compare(self, ready: FittingRequest) -> None:
        current = prefix(ready.request)
        assert current == prefix(ready.request, ready.history)
        broken = broken_since_last_request(self.session, current, "build", MODEL)
        if ready.pruned is not None:
            self.pruned += 1
            self.seen["pruned"] += 1
            assert self.pruned == 1, "pruned twice between two compactions"
            assert self.anew or broken == "pruning"
        elif not self.anew and self.before is not None:
            assert broken is None
            assert opens(self.before, ready.request)
            self.seen["kept"] += 1

    def _seen(self) -> ContextSample:
        silent = (observed("acme/silent", 1),) if self.silent else ()
        return sample(observed("core/date", self.day), *silent)


def opens(before: ModelRequest, after: ModelRequest) -> bool:
    """Whether every byte that was sent is sent again, in its place."""
    head = to_json((before.tools, before.system)) == to_json((after.tools, after.system))
    sent = [to_json(turn) for turn in before.turns]
    return head and [to_json(turn) for turn in after.turns[: len(sent)]] == sent


@PROPERTY
@for_all(st.lists(moments, max_size=30))
def test_what_was_sent_opens_what_is_sent_next(plan: list[str]) -> None:
    """F-28, G-19, G-40: but for one pruning, and where a compaction or an epoch begins anew."""
    story = Story()

    for moment in plan:
        story.live(moment)


def test_such_lives_have_everything_in_them() -> None:
    """G-40, G-19: the property above is not true for want of trying."""
    story = Story()

    for moment in ("large", "news", "large", "small", "vanish", "large", "large", "news") * 4:
        story.live(moment)

    assert min(story.seen[what] for what in ("compacted", "pruned", "kept")) > 1
