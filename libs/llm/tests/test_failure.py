"""Failures are classified by status, then by text. Secrets are removed."""

from pathlib import Path

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_llm import overflow
from fairlead_llm.failure import (
    BODY_LENGTH_MAX,
    MESSAGE_LENGTH_MAX,
    http_failure,
    new_failure,
    remove_secrets,
    retry_after_s,
)

CASES = Path(__file__).resolve().parents[3].parent / "shared/recordings/overflow_cases.json"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (307, "unknown", False),
        (400, "invalid-request", False),
        (401, "auth", False),
        (402, "rate-limit", False),
        (403, "auth", False),
        (404, "invalid-request", False),
        (408, "timeout", True),
        (409, "invalid-request", True),
        (413, "invalid-request", False),
        (429, "rate-limit", True),
        (500, "server-error", True),
        (503, "overloaded", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_decides_kind_and_retry(status: int, kind: str, *, retryable: bool) -> None:
    failure = http_failure(status, {}, "")

    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert (failure.status, failure.in_stream) == (status, False)
    assert failure.message == f"HTTP status {status}"


def error(message: str, **more: object) -> str:
    return orjson.dumps({"error": {"message": message, **more}}).decode()


def test_a_rate_limit_that_mentions_policy_or_length_is_still_a_rate_limit() -> None:
    assert http_failure(429, {}, error("content policy: too many tokens")).kind == "rate-limit"


def test_an_exhausted_quota_is_not_worth_a_retry() -> None:
    failure = http_failure(429, {}, error("You ran out", code="insufficient_quota"))

    assert (failure.kind, failure.retryable) == ("rate-limit", False)


def test_an_account_without_credit_is_no_bad_request() -> None:
    body = error("Your credit balance is too low to access the Anthropic API.")

    failure = http_failure(400, {}, body)

    assert (failure.kind, failure.retryable) == ("rate-limit", False)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            "<!DOCTYPE html>\n<html><head><title>502\n Bad gateway</title>",
            "HTTP status 502, a web page: 502 Bad gateway",
        ),
        (
            "<html><body><h1 class='x'>nginx</h1><p>No</p></body></html>",
            "HTTP status 502, a web page: nginx",
        ),
        ("<html><body><p>No</p></body></html>", "HTTP status 502"),
        ("<error>plain</error>", "<error>plain</error>"),
    ],
)
def test_of_a_web_page_the_title_is_the_message(page: str, message: str) -> None:
    failure = http_failure(502, {}, page)

    assert (failure.message, failure.body) == (message, page)


def test_a_policy_refusal_is_a_content_filter() -> None:
    assert (
        http_failure(400, {}, error("x", code="content_policy_violation")).kind == "content-filter"
    )


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_an_overflow_is_recognised_and_never_retried(status: int) -> None:
    """G-37: only the texts and codes of an error decide."""
    failure = http_failure(status, {}, error("x", code="context_length_exceeded"))

    assert (failure.kind, failure.retryable) == ("context-overflow", False)


def test_the_words_of_a_wrapped_upstream_are_heard() -> None:
    failure = http_failure(400, {}, error("Provider error", metadata={"raw": "prompt is too long"}))

    assert failure.kind == "context-overflow"
    assert failure.message == "Provider error: prompt is too long"


def test_the_provider_may_overrule_the_retry() -> None:
    assert not http_failure(500, {"x-should-retry": "false"}, "").retryable
    assert http_failure(400, {"x-should-retry": "true"}, "").retryable


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "2", "retry-after-ms": "150"}, 0.15),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30.0,
        ),
    ],
)
def test_the_advised_wait_is_read(headers: dict[str, str], wait: float | None) -> None:
    assert retry_after_s(headers) == wait


@given(
    st.lists(
        st.sampled_from(
            [
                "Wed,",
                "21",
                "Oct",
                "2026",
                "99999999999",
                "07:28:00",
                "07:28:999999999999999999999",
                "GMT",
                "+9999",
                "-99999999",
                "PM",
                ":",
                "0",
                "-1",
                "31",
                "1e400",
                "²",
            ]
        ),
        max_size=8,
    ).map(" ".join)
)
@example("Wed, 21 Oct 2026 07:28:99999999999999999999 GMT")
def test_an_advised_wait_that_makes_no_sense_is_no_crash(header: str) -> None:
    """D-43: for any header of a provider, the wait is finite or absent."""
    date = "Wed, 21 Oct 2026 07:27:00 GMT"
    for headers in ({"retry-after": header, "date": date}, {"retry-after": date, "date": header}):
        wait = retry_after_s(headers)

        assert wait is None or 0 <= wait < float("inf")


def test_a_stored_body_is_bounded_and_its_secret_fields_are_blank() -> None:
    body = orjson.dumps({"api_key": "sk-1", "deep": [{"Authorization": "b"}], "max_tokens": 5})

    assert http_failure(400, {}, body.decode()).body == (
        '{"api_key":"[redacted]","deep":[{"Authorization":"[redacted]"}],"max_tokens":5}'
    )
    assert len(http_failure(500, {}, "x" * 100_000).body or "") == BODY_LENGTH_MAX


def test_an_echoed_key_is_taken_out() -> None:
    failure = remove_secrets(("sk-1",), http_failure(401, {}, "wrong key sk-1"))

    assert "sk-1" not in f"{failure}"


def test_what_is_broken_by_nature_is_not_retryable() -> None:
    assert not new_failure("malformed-stream", "x").retryable
    assert new_failure("network", "x").retryable


def test_overflow_patterns_agree_with_the_checked_messages() -> None:
    """G-37: only the texts and codes of an error decide."""
    if not CASES.is_file():
        pytest.skip(f"no cases at {CASES}")
    cases = orjson.loads(CASES.read_bytes())

    assert [text for text in cases["positive"] if not overflow.mentions_overflow(text)] == []
    assert [text for text in cases["negative"] if overflow.mentions_overflow(text)] == []


@pytest.mark.parametrize(
    ("text", "overflows"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", True),
        ("400 status code (no body)", True),
        ("Input length 9 exceeds model's maximum context length (8).", True),
        ("Throttling error: Too many tokens, please wait.", False),
        ("Rate limit: token limit exceeded", False),
        ("max_tokens: 100000 > 64000", False),
    ],
)
def test_overflow_is_told_from_throttling(text: str, *, overflows: bool) -> None:
    """G-37: only the texts and codes of an error decide."""
    assert overflow.mentions_overflow(text) is overflows


def test_a_body_nested_beyond_reason_is_cut_not_a_crash() -> None:
    body = '{"error":' * 500 + '{"api_key":"sk-1"}' + "}" * 500

    refusal = http_failure(500, {}, body)

    assert refusal.kind == "server-error"
    assert "sk-1" not in (refusal.body or "")


def test_the_word_after_the_scheme_is_removed_too() -> None:
    """O-32: the header is `Bearer abc`, and the provider repeats only `abc`."""
    echo = '{"error":{"message":"wrong key abcdefgh12 for Bearer abcdefgh12"}}'

    failure = remove_secrets(("Bearer abcdefgh12",), http_failure(401, {}, echo))

    assert failure.message == "wrong key [redacted] for [redacted]"
    assert "abcdefgh12" not in str(failure.body)


@pytest.mark.parametrize("kept", [1, 8, 9, 11])
def test_a_secret_that_the_limit_of_a_message_cuts_is_removed(kept: int) -> None:
    """O-32: a message is cut before its secrets are removed, so its end may be half a secret."""
    key = "abcdefgh1234"
    text = "x" * (MESSAGE_LENGTH_MAX - kept) + key

    failure = remove_secrets((key,), http_failure(401, {}, text))

    assert not failure.message.endswith(key[:8])
    assert key not in str(failure.body)
