"""Compaction: when a request is too large, what is summarised, and when a summary is taken."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    dispatched,
    promoted,
    step_ended,
    step_started,
    then,
)
from libs.session.tests.conftest import given as session_of

from fairlead_schema.events import (
    AgentSwitched,
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    ContextUpdated,
    SessionEvent,
    SyntheticAdded,
    TextEnded,
    TextStarted,
)
from fairlead_schema.provider.request import TextPart, UserTurn
from fairlead_session.compaction import estimate
from fairlead_session.compaction.compaction import (
    TRIES_MAX,
    CompactionPlan,
    CompactionPolicy,
    FittingRequest,
    NothingToCompact,
    Window,
    count_recent,
    fit,
    is_oversized,
    plan,
)
from fairlead_session.compaction.lifecycle import CompactionRun, end
from fairlead_session.compaction.overflow import can_recover_overflow
from fairlead_session.state.model_requests import RequestState
from fairlead_session.state.session import Session
from fairlead_session.state.turn import CompactionProgress
from fairlead_session.turn.request import ModelIdentity, correlation
from fairlead_session.turn.stream_calls import Offer
from fairlead_testing.compaction import DEFAULT_COMPACTION

IDENTITY = ModelIdentity(
    MODEL, "fast-1", system="Be careful.", headers={"x-own": "1"}, options={"o": 1}
)
WIDE = Window(context=100_000, output=8_000)
SMALL_KEEP = replace(DEFAULT_COMPACTION, keep_tokens=10)
STARTED = CompactionStarted(message_id="msg_c", reason="auto")


def text_events(id_: str, text: str) -> tuple[SessionEvent, ...]:
    """One turn's answer."""
    return (
        dispatched(id_),
        step_started(id_),
        TextStarted(assistant_message_id=id_, text_id="t"),
        TextEnded(assistant_message_id=id_, text_id="t", text=text),
        step_ended(id_),
    )


def talked(*events: SessionEvent) -> Session:
    return session_of(CREATED, INITIALISED, *events)


LONG = talked(
    promoted("msg_1", "old " * 500),
    *text_events("msg_a", "answer " * 300),
    promoted("msg_2", "What now?"),
)


def run_of(plan: CompactionPlan, policy: CompactionPolicy = SMALL_KEEP) -> CompactionRun:
    return CompactionRun(STARTED, plan, IDENTITY, policy)


def planned(
    session: Session, policy: CompactionPolicy = SMALL_KEEP, window: Window = WIDE
) -> CompactionPlan:
    outcome = plan(session, IDENTITY, policy, window)
    assert isinstance(outcome, CompactionPlan)
    return outcome


def prompt_of(plan: CompactionPlan) -> str:
    (turn,) = plan.request.turns
    assert isinstance(turn, UserTurn)
    (part,) = turn.content
    assert isinstance(part, TextPart)
    return part.text


def ready(plain: int, session: Session = LONG) -> FittingRequest:
    fitting = fit(session, IDENTITY, Offer(), replace(DEFAULT_COMPACTION, auto=False), WIDE)
    assert isinstance(fitting, FittingRequest)
    return replace(fitting, estimate=plain)


def too_large(
    plain: int, policy: CompactionPolicy, window: Window, session: Session = LONG
) -> bool:
    return is_oversized(session, ready(plain), IDENTITY, policy, window)


def test_the_defaults() -> None:
    """G-04."""
    policy = DEFAULT_COMPACTION

    assert (policy.buffer, policy.keep_tokens) == (20_000, 8_000)
    assert (policy.summary_tokens, policy.excerpt) == (4_096, 2_000)


@pytest.mark.parametrize(
    ("plain", "window", "over"),
    [
        (80_000, Window(100_000, 8_000), False),
        (80_001, Window(100_000, 8_000), True),
        (70_000, Window(100_000, 30_000), False),
        (70_001, Window(100_000, 30_000), True),
        (80_001, Window(100_000), True),
        (1, Window(10_000), True),
    ],
)
def test_a_request_is_too_large_without_room_for_its_answer(
    plain: int, window: Window, *, over: bool
) -> None:
    """G-02, G-03: beyond the context less the output or the buffer, whichever is larger."""
    assert too_large(plain, DEFAULT_COMPACTION, window) is over


def test_the_requests_own_output_comes_before_the_models() -> None:
    """G-03."""
    modest = replace(ready(70_001), request=ready(0).request)
    generous = replace(
        modest,
        request=replace(
            modest.request, generation=replace(modest.request.generation, max_tokens=30_000)
        ),
    )

    assert not is_oversized(LONG, modest, IDENTITY, DEFAULT_COMPACTION, Window(100_000, 8_000))
    assert is_oversized(LONG, generous, IDENTITY, DEFAULT_COMPACTION, Window(100_000, 8_000))


@pytest.mark.parametrize(
    ("policy", "window"),
    [(replace(DEFAULT_COMPACTION, auto=False), WIDE), (DEFAULT_COMPACTION, Window(0, 8_000))],
)
def test_without_the_setting_or_a_known_window_nothing_is_foreseen(
    policy: CompactionPolicy, window: Window
) -> None:
    """G-06, G-07."""
    assert not too_large(10**9, policy, window)


def test_an_overflow_is_recovered_from_whatever_was_foreseen() -> None:
    """G-06, G-07, G-31: the estimate and the setting say nothing; a window must be known."""
    assert can_recover_overflow(LONG, WIDE)
    assert not can_recover_overflow(LONG, Window())
    assert not can_recover_overflow(
        replace(LONG, compaction=CompactionProgress(overflowed=True)), WIDE
    )
    assert not can_recover_overflow(
        replace(LONG, compaction=CompactionProgress(tries=TRIES_MAX)), WIDE
    )


def test_experience_with_the_model_corrects_the_estimate() -> None:
    """The plain formula stands without experience, or when calibration is off."""
    taught = replace(LONG, requests=RequestState(token_ratios={estimate.key(MODEL): 1.5}))

    assert too_large(60_000, DEFAULT_COMPACTION, WIDE, taught)
    assert not too_large(60_000, DEFAULT_COMPACTION, WIDE)
    assert not too_large(60_000, replace(DEFAULT_COMPACTION, calibrate=False), WIDE, taught)


entries = st.lists(st.text(min_size=1, max_size=60), max_size=12).map(tuple)


@PROPERTY
@given(entries, st.integers(0, 100))
def test_recent_is_the_longest_run_of_whole_entries_that_fits(
    texts: tuple[str, ...], budget: int
) -> None:
    """G-08, G-09: newest first, up to the first that does not fit; never a part of one."""
    count = count_recent(texts, budget)

    recent_entries = texts[len(texts) - count :]
    assert sum(map(estimate.tokens, recent_entries)) <= budget
    if count < len(texts):
        one_more = texts[len(texts) - count - 1 :]
        assert sum(map(estimate.tokens, one_more)) > budget


def test_head_and_recent_are_all_of_the_conversation() -> None:
    """G-08, G-22, G-29: what is not kept is summarised."""
    plan_ = planned(LONG)

    assert plan_.recent == "[User]: What now?"
    assert prompt_of(plan_).startswith("<conversation>\n[User]: old old")
    assert "[Assistant]: answer" in prompt_of(plan_)
    assert "What now?" not in prompt_of(plan_)


def test_a_newest_entry_that_is_too_long_is_summarised_too() -> None:
    """G-09: recent is empty then."""
    plan_ = planned(talked(promoted("msg_1", "short"), promoted("msg_2", "long " * 100)))

    assert plan_.recent == ""
    assert "short" in prompt_of(plan_)
    assert "long long" in prompt_of(plan_)


@pytest.mark.parametrize(
    "session",
    [
        talked(),
        talked(AgentSwitched(message_id="msg_s", agent="plan")),
        talked(promoted("msg_1", "hi")),
    ],
    ids=["nothing", "only switches", "all recent"],
)
def test_without_a_head_there_is_nothing_to_compact(session: Session) -> None:
    """G-10: and the request proceeds."""
    assert isinstance(plan(session, IDENTITY, SMALL_KEEP, WIDE), NothingToCompact)
    fitting = fit(session, IDENTITY, Offer(), replace(SMALL_KEEP, buffer=99_999), WIDE)
    assert isinstance(fitting, FittingRequest)


def test_a_conversation_that_does_not_fit_is_shortened_for_its_summary() -> None:
    """G-11, D10: at the boundary it is sent whole; one token less and its longest entries are cut."""
    policy = replace(DEFAULT_COMPACTION, keep_tokens=0)
    whole = prompt_of(planned(LONG, policy))
    size = estimate.tokens(whole)

    assert prompt_of(planned(LONG, policy, Window(size + 4_096))) == whole
    tight = prompt_of(planned(LONG, policy, Window(size + 4_000)))
    assert "more characters were left out]" in tight
    assert estimate.tokens(tight) <= size - 96
    assert "What now?" in tight, "short entries stay whole"


def test_a_window_without_room_for_a_summary_is_not_asked_for_one() -> None:
    """G-11: a window that the template alone fills cannot summarise anything."""
    assert isinstance(plan(LONG, IDENTITY, SMALL_KEEP, Window(4_300)), NothingToCompact)


def test_a_history_of_a_larger_model_is_compacted_for_a_smaller_one() -> None:
    """D10: 32,700 tokens went to a window of 16,000, and the provider refused them for ever."""
    session = talked(*(promoted(f"msg_{n}", f"{n} " + "word " * 2_000) for n in range(14)))
    small = Window(16_000, 2_000)
    assert estimate.tokens("word " * 28_000) > 2 * small.context

    outcome = fit(session, IDENTITY, Offer(), DEFAULT_COMPACTION, small)

    assert isinstance(outcome, CompactionPlan)
    assert estimate.tokens(prompt_of(outcome)) <= small.context - 2_000


def test_a_summarys_request_is_one_message_to_the_same_model() -> None:
    """G-13, G-41: no system, no tools, the same headers, its own output."""
    request = planned(LONG).request

    assert (request.model, request.system, request.tools) == ("fast-1", (), ())
    assert len(request.turns) == 1
    assert request.headers == {"x-own": "1", **correlation(LONG)}
    assert request.generation.max_tokens == 4_096
    assert request.options == {"o": 1}


def test_a_repeated_compaction_folds_the_earlier_one_in() -> None:
    """G-21, G-23: its summary as prior, its recent text as part of the conversation."""
    ended = CompactionEnded(message_id="msg_c", reason="auto", text="EARLIER", recent="[User]: x")
    session = then(LONG, ended, promoted("msg_3", "more " * 100), promoted("msg_4", "And?"))

    plan_ = planned(session)

    conversation, _, rest = prompt_of(plan_).partition("</conversation>")
    assert conversation.startswith("<conversation>\n[User]: x\n\n[User]: more")
    assert "<prior-summary>\nEARLIER\n</prior-summary>" in rest
    assert plan_.recent == "[User]: And?"


def test_right_after_a_compaction_its_recent_text_can_be_compacted_again() -> None:
    """G-10, G-21: an empty head with an earlier summary is one only without recent text."""
    ended = CompactionEnded(message_id="msg_c", reason="auto", text="EARLIER", recent="[User]: x")

    assert prompt_of(planned(then(LONG, ended))).startswith("<conversation>\n[User]: x\n</")
    bare = ended.model_copy(update={"recent": ""})
    assert isinstance(plan(then(LONG, bare), IDENTITY, SMALL_KEEP, WIDE), NothingToCompact)


def test_a_small_window_keeps_a_part_of_it_at_most() -> None:
    """G-08: the default budget would leave nothing to summarise there."""
    session = talked(*(promoted(f"msg_{n}", "word " * 100) for n in range(10)))

    plan_ = planned(session, replace(DEFAULT_COMPACTION, summary_tokens=100), Window(2_400, 100))

    assert plan_.recent.count("[User]") == 4


def test_blank_or_no_smaller_summaries_are_not_taken() -> None:
    """G-14: and the request must shrink."""
    plan_ = planned(LONG)

    def ended(summary: str) -> CompactionEnded | NothingToCompact:
        return end(LONG, run_of(plan_), summary)

    accepted = ended("## Objective\n- sail")
    assert isinstance(accepted, CompactionEnded)
    assert (accepted.message_id, accepted.recent) == ("msg_c", "[User]: What now?")
    assert isinstance(ended(" \n"), NothingToCompact)
    assert isinstance(ended("even longer " * 1000), NothingToCompact)


def test_what_is_said_during_a_summary_is_kept() -> None:
    """Nothing that became visible while the summary was made is lost with the rest."""
    plan_ = planned(LONG)
    later = then(LONG, STARTED, SyntheticAdded(message_id="msg_y", text="by the way"))

    ended = end(later, run_of(plan_), "sum")

    assert isinstance(ended, CompactionEnded)
    assert ended.recent == "[User]: What now?\n\n[Synthetic]: by the way"


def test_updates_of_the_epoch_in_force_do_not_make_it_compact_for_ever() -> None:
    """G-38: they stay in the request, and a second try that does not shrink it is the last."""
    update = ContextUpdated(message_id="msg_s", text="news " * 200)
    ended = CompactionEnded(message_id="msg_c", reason="auto", text="short", recent="")
    session = then(LONG, update, ended)
    tight = replace(DEFAULT_COMPACTION, keep_tokens=0, buffer=99_999)

    outcome = fit(session, IDENTITY, Offer(), tight, WIDE)

    assert isinstance(outcome, CompactionPlan)
    assert isinstance(end(session, run_of(outcome, tight), "no shorter"), NothingToCompact)
    failed = CompactionFailed(message_id="msg_c", reason="auto", outcome="failed", message="no")
    assert isinstance(
        fit(then(session, STARTED, failed), IDENTITY, Offer(), tight, WIDE), FittingRequest
    )
    twice = then(session, STARTED, STARTED)
    assert isinstance(fit(twice, IDENTITY, Offer(), tight, WIDE), FittingRequest)


@PROPERTY
@given(
    st.lists(st.text(max_size=200), min_size=1, max_size=10),
    st.integers(0, 200),
    st.integers(1, 3_000),
    st.text(max_size=400),
)
@example(["", "", ""], 0, 273, "")
@example(["", "", "0"], 0, 275, "0")
def test_whatever_is_planned_and_ended_makes_the_request_smaller(
    texts: list[str], tokens: int, context: int, summary: str
) -> None:
    """G-08, G-11: total over any conversation, window and summary."""
    session = talked(*(promoted(f"msg_{n}", text) for n, text in enumerate(texts)))
    policy, window = (
        replace(DEFAULT_COMPACTION, keep_tokens=tokens, summary_tokens=50),
        Window(context),
    )
    outcome = plan(session, IDENTITY, policy, window)
    if isinstance(outcome, NothingToCompact):
        return

    ended = end(session, run_of(outcome, policy), summary)

    assert estimate.tokens(prompt_of(outcome)) <= context - 50
    if isinstance(ended, CompactionEnded):
        after = fit(
            then(session, ended), IDENTITY, Offer(), replace(DEFAULT_COMPACTION, auto=False), window
        )
        before = fit(session, IDENTITY, Offer(), replace(DEFAULT_COMPACTION, auto=False), window)
        assert isinstance(after, FittingRequest)
        assert isinstance(before, FittingRequest)
        assert after.estimate < before.estimate
