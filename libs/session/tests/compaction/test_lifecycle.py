"""The life of a compaction in the log: what it starts with, what it costs, and how it ends."""

from dataclasses import replace

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    dispatched,
    given,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    CompactionUsed,
    SessionEvent,
    TextEnded,
    TextStarted,
)
from fairlead_schema.provider.events import (
    Finish,
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    StepFinish,
    TextChunk,
)
from fairlead_session.compaction.compaction import (
    TRIES_MAX,
    CompactionPlan,
    Window,
    plan,
)
from fairlead_session.compaction.lifecycle import (
    Cause,
    CompactionRun,
    Summary,
    check_budget_and_tries,
    conclude,
    fail,
    prepare,
    receive,
    start,
)
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.usage import TokenPrice
from fairlead_testing.compaction import DEFAULT_COMPACTION

IDENTITY = ModelIdentity(MODEL, "fast-1")
POLICY = replace(DEFAULT_COMPACTION, keep_tokens=10)
WIDE = Window(context=100_000, output=8_000)
FINISH = StepFinish("stop", ProviderUsage(input=1_000_000, output=1_000_000))
LONG = given(
    CREATED,
    INITIALISED,
    promoted("msg_1", "old " * 500),
    dispatched("msg_a"),
    step_started("msg_a"),
    TextStarted(assistant_message_id="msg_a", text_id="t"),
    TextEnded(assistant_message_id="msg_a", text_id="t", text="answer " * 300),
    step_ended("msg_a"),
    promoted("msg_2", "What now?"),
)


def run(cause: Cause = "auto") -> CompactionRun:
    outcome = plan(LONG, IDENTITY, POLICY, WIDE)
    assert isinstance(outcome, CompactionPlan)
    return CompactionRun(start("msg_c", cause), outcome, IDENTITY, POLICY, TokenPrice(1, 2))


def summary_of(*events: ProviderEvent) -> Summary:
    summary = Summary()
    for event in events:
        summary = receive(summary, event)
    return summary


def concluded(*events: ProviderEvent, cause: Cause = "auto") -> tuple[SessionEvent, ...]:
    return conclude(LONG, run(cause), summary_of(*events))


@pytest.mark.parametrize(
    ("cause", "reason"), [("auto", "auto"), ("overflow", "auto"), ("manual", "manual")]
)
def test_only_a_clients_request_is_called_manual(cause: Cause, reason: str) -> None:
    """G-12: an overflow compacts by itself, like a request that seems too large."""
    assert start("msg_c", cause).reason == reason
    assert fail(cause, "refused", "no").reason == reason


def test_over_budget_no_compaction_starts() -> None:
    """A summary is a provider call too."""
    refused = check_budget_and_tries(LONG, "manual", "the session used 2 of 1 USD")

    assert refused == CompactionFailed(
        reason="manual", outcome="refused", message="the session used 2 of 1 USD"
    )
    assert check_budget_and_tries(LONG, "manual", None) is None


def test_after_two_starts_without_an_end_no_third_one_follows() -> None:
    """G-15: each start may have been the last deed of a runner that died."""
    started = CompactionStarted(message_id="msg_c", reason="auto")

    refused = check_budget_and_tries(then(LONG, *[started] * TRIES_MAX), "overflow", None)

    assert refused is not None
    assert (refused.outcome, refused.message) == (
        "failed",
        "it was begun 2 times and never finished",
    )
    assert check_budget_and_tries(then(LONG, started), "overflow", None) is None


def test_a_client_gets_the_recent_entries_summarised_too() -> None:
    """Where nothing is old, only a client's request finds something to summarise."""
    recent = given(CREATED, INITIALISED, promoted("msg_1", "hi"))

    by_client = prepare(recent, "manual", IDENTITY, POLICY, WIDE)
    by_overflow = prepare(recent, "overflow", IDENTITY, POLICY, WIDE)

    assert isinstance(by_client, CompactionPlan)
    assert by_client.recent == ""
    assert isinstance(by_overflow, CompactionFailed)
    assert by_overflow.outcome == "nothing"


def test_without_any_history_there_is_nothing_to_compact() -> None:
    """G-10: also if a person asks for the compaction."""
    outcome = prepare(given(CREATED, INITIALISED), "manual", IDENTITY, POLICY, WIDE)

    assert outcome == fail("manual", "nothing", "nothing was said yet")


def test_a_summary_is_paid_for_and_ends_its_compaction() -> None:
    """G-12, G-17: usage first, then the end, under the id of the start."""
    used, ended = concluded(TextChunk("t", "SUM"), TextChunk("t", "MARY"), FINISH)

    assert used == CompactionUsed(
        message_id="msg_c", model=MODEL, cost=3.0, tokens=Tokens(input=1_000_000, output=1_000_000)
    )
    assert ended == CompactionEnded(
        message_id="msg_c", reason="auto", text="SUMMARY", recent="[User]: What now?"
    )


def test_a_summary_that_the_provider_did_not_count_has_no_usage() -> None:
    """The stream may end without a finish."""
    (ended,) = concluded(TextChunk("t", "SUMMARY"))

    assert isinstance(ended, CompactionEnded)


@pytest.mark.parametrize("finish", ["content-filter", "error"])
def test_a_summary_that_was_cut_off_is_paid_for_and_not_used(finish: Finish) -> None:
    """G-14: its text may be any part of a summary."""
    used, failed = concluded(TextChunk("t", "SUMMARY"), StepFinish(finish, FINISH.usage))

    assert isinstance(used, CompactionUsed)
    assert failed == CompactionFailed(
        message_id="msg_c",
        reason="auto",
        outcome="failed",
        message=f"the model ended its summary with: {finish}",
    )


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((ProviderFailure("server-error", "broken"),), "broken"),
        ((TextChunk("t", "SUM"), ProviderFailure("server-error", "broken")), "broken"),
        ((TextChunk("t", " \n"),), "the model gave no summary"),
        (
            (TextChunk("t", "no shorter " * 4000),),
            "the summary is no smaller than what it would replace",
        ),
    ],
    ids=["refused", "broken off", "blank", "no smaller"],
)
def test_a_compaction_without_a_usable_summary_fails_with_its_reason(
    events: tuple[ProviderEvent, ...], message: str
) -> None:
    """G-14: the failure names the start, and the history stays."""
    (failed,) = concluded(*events, cause="manual")

    assert failed == CompactionFailed(
        message_id="msg_c", reason="manual", outcome="failed", message=message
    )
