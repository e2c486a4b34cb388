"""Estimates: a plain formula, corrected within bounds by what providers count."""

import json

import pytest
from hypothesis import given
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

from fairlead_schema.catalog import CacheTokens, Tokens
from fairlead_schema.provider.request import ModelRequest, TextPart, ToolDefinition, UserTurn
from fairlead_session.compaction import estimate
from fairlead_session.compaction.estimate import RATIO_MAX, RATIO_MIN, apply_ratio, update_ratio

KEY = estimate.key(MODEL)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 0), ("ab", 1), ("abcd", 1), ("abcdef", 2), ("😀", 1), ("\ud800x", 1)],
)
def test_a_token_is_a_quarter_of_the_utf_16_length(text: str, count: int) -> None:
    """G-01: rounded half up; a character outside the plane counts twice."""
    assert estimate.tokens(text) == count


@PROPERTY
@given(st.text(), st.text())
def test_an_estimate_is_never_negative_and_grows_with_its_text(left: str, right: str) -> None:
    """G-01."""
    assert 0 <= estimate.tokens(left) <= estimate.tokens(left + right)


def test_a_request_is_estimated_by_all_that_the_model_reads() -> None:
    """G-02: system, messages and tools as JSON; headers and options are not read by it."""
    request = ModelRequest(
        "m",
        system=("Be careful.",),
        turns=(UserTurn((TextPart("hello"),)),),
        tools=(ToolDefinition("read", "Reads.", {"type": "object"}),),
        headers={"x": "y" * 1000},
    )
    read = {
        "system": ["Be careful."],
        "messages": [{"content": [{"text": "hello", "metadata": None}], "role": "user"}],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
    }

    assert estimate.estimate_request(request) == estimate.tokens(
        json.dumps(read, separators=(",", ":"))
    )


def test_a_correction_is_the_ratio_or_nothing() -> None:
    assert (apply_ratio(100, None), apply_ratio(100, 1.25), apply_ratio(0, 2.0)) == (100, 125, 0)


@PROPERTY
@given(
    st.none() | st.floats(RATIO_MIN, RATIO_MAX),
    st.integers(-5, 10**9),
    st.integers(-5, 10**9),
)
def test_no_report_takes_the_ratio_out_of_its_bounds(
    ratio: float | None, plain: int, reported: int
) -> None:
    """What counts nothing teaches nothing; a strange report moves it no further than its bound."""
    after = update_ratio(ratio, plain=plain, reported=reported)

    if plain <= 0 or reported <= 0:
        assert after == ratio
    else:
        assert after is not None
        assert RATIO_MIN <= after <= RATIO_MAX


def test_a_steady_provider_is_learned() -> None:
    ratio: float | None = None
    for _ in range(20):
        ratio = update_ratio(ratio, plain=1000, reported=1400)

    assert ratio == pytest.approx(1.4, abs=0.001)


def test_the_log_teaches_the_ratio_of_each_model() -> None:
    """Folded from the attempt's estimate and the step's usage, cached tokens included."""
    counted = Tokens(input=100, output=9, cache=CacheTokens(read=40, write=10))
    attempt = dispatched().model_copy(update={"estimate": 100})
    session = session_of(CREATED, INITIALISED, promoted("msg_1"))

    after = then(session, attempt, step_started(), step_ended(tokens=counted))
    silent = then(session, dispatched(), step_started(), step_ended(tokens=counted))

    assert after.requests.token_ratios == {KEY: 1.5}
    assert silent.requests.token_ratios == {}
