"""When a failed attempt is made again, and after how long."""

from dataclasses import replace

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    step_started,
    then,
)

from fairlead_schema.events import (
    ExecutionReleased,
    InterruptRequested,
    ResumeRequested,
    SessionEvent,
    TurnRetried,
)
from fairlead_schema.events.turn import RetryError
from fairlead_schema.provider.events import ProviderFailure
from fairlead_session.execution.retry import RetryPolicy, retry, retry_wait_s
from fairlead_session.explain import explain
from fairlead_session.next_move import TakeTurn, next_move

BUSY = ProviderFailure("rate-limit", "slow down", retryable=True, status=429)
ASKED = given(CREATED, INITIALISED, admitted("msg_1"), promoted("msg_1"), dispatched())


def test_a_retry_is_told_and_the_turn_is_owed_again() -> None:
    """D-43, D-44: each retry is a public event with its number and its reason."""
    decision = retry(ASKED, BUSY, RetryPolicy(), chance=0.5)

    assert decision is not None
    assert (decision.event.attempt, decision.event.error.status_code) == (1, 429)
    again = then(ASKED, decision.event)
    assert again.turn.retries == 1
    assert next_move(again) == TakeTurn((), 1)


def test_retry_after_is_honoured_and_capped() -> None:
    failure_ = ProviderFailure("rate-limit", "later", retryable=True, retry_after_s=7.0)
    long = ProviderFailure("rate-limit", "much later", retryable=True, retry_after_s=9e9)

    seven, capped = (
        retry(ASKED, item, RetryPolicy(delay_s_max=60), chance=0) for item in (failure_, long)
    )

    assert seven is not None
    assert capped is not None
    assert (seven.delay_s, capped.delay_s) == (7.0, 60)


def test_an_asked_wait_is_spread_only_to_later() -> None:
    """Sessions that were refused together do not come back together, and none too early."""
    failure_ = ProviderFailure("rate-limit", "later", retryable=True, retry_after_s=10.0)

    delays = [retry(ASKED, failure_, RetryPolicy(), chance=chance) for chance in (0, 0.5, 0.999)]

    assert [delay and delay.delay_s for delay in delays] == [10.0, 11.0, pytest.approx(11.998)]


WAITING = then(
    ASKED,
    claimed(),
    TurnRetried(attempt=1, error=RetryError(message="busy", is_retryable=True)),
    ExecutionReleased(generation=1, reason="retry-later", wake_at=5_000),
)


def test_a_session_waits_for_its_timer() -> None:
    assert [retry_wait_s(WAITING, now_ms=now) for now in (1_000, 4_900, 5_000, 9_000)] == [
        4.0,
        0.1,
        0,
        0,
    ]
    assert retry_wait_s(then(WAITING, claimed(2)), now_ms=1_000) == 0


@pytest.mark.parametrize(
    ("news", "waits"),
    [
        (admitted("msg_2", delivery="queue"), True),
        (admitted("msg_2"), False),
        (ResumeRequested(), False),
        (ResumeRequested(forced=False), False),
        (InterruptRequested(), False),
    ],
)
def test_what_may_be_asked_before_its_time_ends_the_wait(news: SessionEvent, waits: bool) -> None:  # noqa: FBT001
    """B-11: a queued input has its turn after the one that waits, so it hurries nobody."""
    after = then(WAITING, news)

    assert (retry_wait_s(after, now_ms=1_000) > 0) is waits
    explanation = explain(after)
    assert (explanation.code == "retry-later") is waits


def test_what_cannot_help_is_not_retried() -> None:
    refused = ProviderFailure("auth", "no key", retryable=False)

    assert retry(ASKED, refused, RetryPolicy(), chance=0.5) is None


def test_retries_end() -> None:
    session = ASKED
    for _ in range(4):
        decision = retry(session, BUSY, RetryPolicy(attempts_max=5), chance=0.5)
        assert decision is not None
        session = then(session, decision.event, dispatched())

    assert retry(session, BUSY, RetryPolicy(attempts_max=5), chance=0.5) is None


@pytest.mark.parametrize(
    "progress", [(dispatched(), step_started()), (promoted("msg_2"),), (ResumeRequested(),)]
)
def test_what_is_a_turn_of_its_own_has_all_its_retries(progress: tuple[SessionEvent, ...]) -> None:
    """D-43: an answer that began, new input and a resume leave earlier failures behind."""
    again = retry(ASKED, BUSY, RetryPolicy(), chance=0.5)
    assert again is not None
    tired = then(ASKED, again.event, dispatched(), again.event)
    assert tired.turn.retries == 2

    fresh = retry(then(tired, *progress), BUSY, RetryPolicy(), chance=0.5)

    assert fresh is not None
    assert (fresh.event.attempt, fresh.delay_s) == (1, 0.5)


def test_a_long_series_of_failures_stays_below_the_cap() -> None:
    """D-43: however often it doubled."""
    patient = RetryPolicy(attempts_max=100, delay_s_max=7.0)
    tired = replace(ASKED, turn=replace(ASKED.turn, retries=90))

    late = retry(tired, BUSY, patient, chance=0.999)

    assert late is not None
    assert late.delay_s == 7.0


@examples(chance=st.floats(0, 1, exclude_max=True), retries=st.integers(0, 3))
def test_delays_grow_and_stay_within_their_spread(chance: float, retries: int) -> None:
    session = ASKED
    for _ in range(retries):
        decision = retry(session, BUSY, RetryPolicy(), chance=0.5)
        assert decision is not None
        session = then(session, decision.event, dispatched())

    decision = retry(session, BUSY, RetryPolicy(), chance=chance)

    assert decision is not None
    middle = 0.5 * 2**retries
    assert middle * 0.8 - 1e-9 <= decision.delay_s <= middle * 1.2 + 1e-9
    assert decision.delay_s == pytest.approx(middle, rel=0.2001)
