"""What belongs to a request: only a well-formed trace and id are taken over from a sender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.identity.request_context import (
    CURRENT_REQUEST,
    CURRENT_TRACE,
    add_request_headers,
    parse_request_id,
    parse_trace,
    trace_headers,
)

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_valid_trace_is_taken_over() -> None:
    assert parse_trace(TRACE) == TRACE


def test_a_later_version_may_say_more_and_only_the_sampled_flag_counts() -> None:
    assert parse_trace(f"cc-{TRACE[3:-2]}ff-what-comes-later") == TRACE
    assert parse_trace(f"{TRACE[:-2]}fe") == f"{TRACE[:-2]}00"


@pytest.mark.parametrize(
    "hostile",
    [
        None,
        "",
        TRACE.upper(),
        f"{TRACE}-more",
        f"ff{TRACE[2:]}",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        TRACE[:-1],
        f"{TRACE}\n",
        f" {TRACE}",
        f"cc{TRACE[2:]}-{'x' * 5000}",
        "00-4bf92f3577b34da6a3ce929d0e0e473\u0661-00f067aa0ba902b7-01",
        "'; DROP TABLE session; --",
    ],
)
def test_anything_else_is_no_trace(hostile: str | None) -> None:
    assert parse_trace(hostile) is None


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    trace, request = parse_trace(text), parse_request_id(text)

    assert trace is None or len(trace) == len(TRACE)
    assert request is None or request == text


@pytest.mark.parametrize("odd", [None, "", "a b", "a\nb", "x" * 65, 'a"b'])
def test_an_id_that_cannot_stand_in_a_line_is_none(odd: str | None) -> None:
    assert parse_request_id(odd) is None


def test_messages_carry_what_the_task_has() -> None:
    headers: dict[str, str] = {"a": "b"}
    assert trace_headers() is None
    add_request_headers(headers)
    assert headers == {"a": "b"}

    tokens = CURRENT_TRACE.set(TRACE), CURRENT_REQUEST.set("req_1")
    try:
        add_request_headers(headers)
        assert trace_headers() == {"traceparent": TRACE}
        assert headers == {"a": "b", "traceparent": TRACE, "Fairlead-Request": "req_1"}
    finally:
        CURRENT_TRACE.reset(tokens[0])
        CURRENT_REQUEST.reset(tokens[1])
