"""Which events are sent, in which form, and when a failed delivery is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import ID_LENGTH_MAX
from fairlead_schema.subjects import Address
from fairlead_schema.webhooks.event_names import WEBHOOK_EVENTS, WebhookEvent
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.webhooks.attempts import (
    DeliveryAttempt,
    DeliveryPolicy,
    TryAgain,
    judge_attempt,
)
from fairlead_session.webhooks.delivery import cloud_event, delivery_id
from fairlead_session.webhooks.selection import feed_types, select_event

CHANCES = st.floats(min_value=0, max_value=1)
FAILED = DeliveryAttempt(500, "no")
ENDING: set[RestReason] = {
    *("idle", "interrupted", "declined", "failed", "held"),
    *("turn-limit", "repeated-calls", "over-budget"),
}


def test_a_webhook_gets_the_types_that_it_chose_and_each_once() -> None:
    assert feed_types(["asked"]) == ("permission.asked", "question.asked")
    assert feed_types(["rested", "over-budget"]) == ("execution.released",)
    assert select_event(["turn-ended"], "step.ended", {}) == "turn-ended"
    assert select_event(["failed"], "step.ended", {}) is None
    assert select_event(["asked"], "question.asked", {}) == "asked"


@given(st.sampled_from(sorted(REST_RULES)))
def test_a_session_that_goes_on_by_itself_has_not_rested(reason: RestReason) -> None:
    selected = select_event(["rested"], "execution.released", {"reason": reason})

    assert selected == ("rested" if reason in ENDING else None)


def test_a_used_up_budget_is_told_to_those_who_chose_it() -> None:
    over = {"reason": "over-budget"}

    assert select_event(["over-budget"], "execution.released", over) == "over-budget"
    assert select_event(["over-budget"], "execution.released", {"reason": "idle"}) is None


@given(st.permutations(WEBHOOK_EVENTS))
def test_the_order_of_the_choices_changes_nothing(chosen: list[WebhookEvent]) -> None:
    """Whoever waits for used up budgets hears of them, although such a session rests too."""
    over, idle = {"reason": "over-budget"}, {"reason": "idle"}

    assert select_event(chosen, "execution.released", over) == "over-budget"
    assert select_event(chosen, "execution.released", idle) == "rested"


@given(st.lists(st.sampled_from(WEBHOOK_EVENTS), min_size=1), st.text(), st.text())
def test_nothing_is_selected_that_is_not_in_the_feed_of_the_webhook(
    chosen: list[WebhookEvent], type_: str, reason: str
) -> None:
    selected = select_event(chosen, type_, {"reason": reason})

    assert selected is None or (selected in chosen and type_ in feed_types(chosen))


@given(st.integers(1, 11), CHANCES, CHANCES)
def test_pauses_grow_and_stay_within_their_bounds(number: int, one: float, other: float) -> None:
    policy = DeliveryPolicy(attempts_max=12, first_s=5, longest_s=100)
    verdict = judge_attempt(FAILED, number, policy, chance=one)
    later = judge_attempt(FAILED, min(number + 1, 11), policy, chance=other)

    assert isinstance(verdict, TryAgain)
    assert isinstance(later, TryAgain)
    assert 2.5 <= verdict.after_s <= 100
    # Half of a pause is drawn by lot, and the whole pause doubles.
    assert later.after_s >= verdict.after_s / 2


@given(st.one_of(st.none(), st.integers(100, 599)), st.integers(1, 1000), CHANCES)
def test_every_attempt_has_a_verdict_and_attempts_are_bounded(
    status: int | None, number: int, chance: float
) -> None:
    policy = DeliveryPolicy()
    verdict = judge_attempt(DeliveryAttempt(status, "x"), number, policy, chance=chance)

    delivered = status is not None and 200 <= status < 300
    assert (verdict == "delivered") == delivered
    assert (verdict == "gone") == (status == 410)
    if not delivered and status != 410:
        assert (verdict == "given-up") == (number >= policy.attempts_max)


@given(st.integers(1, 11), st.floats(min_value=0, max_value=1e9))
def test_a_receiver_may_ask_for_a_longer_pause_within_reason(number: int, wanted: float) -> None:
    busy = DeliveryAttempt(429, "later", retry_after_s=wanted)
    verdict = judge_attempt(busy, number, DeliveryPolicy(), chance=0)

    assert isinstance(verdict, TryAgain)
    assert verdict.after_s >= min(wanted, 3600)
    assert verdict.after_s <= 3600


def test_a_forbidden_address_is_given_up_at_once() -> None:
    attempt = DeliveryAttempt(None, "a private address", hopeless=True)

    assert judge_attempt(attempt, 1, DeliveryPolicy(), chance=0) == "given-up"


@given(st.text(), st.text(), st.text())
def test_a_delivery_has_one_id_for_each_webhook_and_event(
    webhook: str, event: str, other: str
) -> None:
    id_ = delivery_id(webhook, event)

    assert id_ == delivery_id(webhook, event)
    assert len(id_) < ID_LENGTH_MAX
    assert (id_ == delivery_id(webhook, other)) == (event == other)


def test_an_event_of_the_feed_becomes_a_cloud_event() -> None:
    envelope = {
        "id": "evt_1",
        "type": "session.next.step.ended",
        "data": {"timestamp": 1_767_225_600_017, "sessionID": "ses_1"},
        "durable": {"aggregateID": "ses_1", "seq": 3, "version": 2},
    }

    assert cloud_event(Address("acme", "ses_1"), envelope, "turn-ended") == {
        "specversion": "1.0",
        "id": "evt_1",
        "source": "/fairlead/acme",
        "type": "session.next.step.ended",
        "subject": "ses_1",
        "time": "2026-01-01T00:00:00.017Z",
        "datacontenttype": "application/json",
        "fairleadevent": "turn-ended",
        "data": envelope,
    }
