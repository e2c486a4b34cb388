"""One attempt: what is sent, where nothing is sent, and what each answer means."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from fairlead_hooks.webhooks.post import post_event
from fairlead_schema.webhooks.record import WebhookRecord, WebhookSecret
from fairlead_schema.webhooks.signature import secret_text, verify
from fairlead_service.config.hooks import HooksConfig
from fairlead_service.ids import now_ms
from fairlead_testing.webhook_receiver import receive_webhooks

SECRET = secret_text(b"s" * 32)
OPEN = HooksConfig(private=True, timeout_s=30)
HASTY = HooksConfig(private=True, timeout_s=0.5)


def record(url: str) -> WebhookRecord:
    secret = WebhookSecret(id="one", secret=SECRET, created=1)
    return WebhookRecord(
        id="whk_1", url=url, events=("rested",), secrets=(secret,), created=1, changed=1, after=0
    )


async def test_an_attempt_is_signed_and_says_what_the_receiver_answered() -> None:
    async with receive_webhooks() as receiver:
        receiver.answers["/busy"] = lambda _request: "503 Busy\r\nretry-after: 7"
        receiver.answers["/stall"] = lambda _request: None
        attempt = await post_event(record(f"{receiver.url}/ok"), "dlv_1", {"a": 1}, OPEN)
        busy = await post_event(record(f"{receiver.url}/busy"), "dlv_1", {}, OPEN)
        stalled = await post_event(record(f"{receiver.url}/stall"), "dlv_1", {}, HASTY)

    [request] = receiver.on("/ok")
    assert verify([SECRET], request.headers, request.body, now_s=now_ms() / 1000) == "dlv_1"
    assert (attempt.status, attempt.delivered, attempt.reason) == (200, True, None)
    assert (busy.status, busy.retry_after_s, busy.delivered) == (503, 7.0, False)
    assert (stalled.status, stalled.reason) == (None, "no answer within 0.5 s")


@pytest.mark.parametrize("pause", ["\xb2", "-7", "soon", "9" * 400])
async def test_a_strange_wish_for_a_pause_does_no_harm(pause: str) -> None:
    """It would be no attempt at all: never counted, and so repeated for ever."""
    async with receive_webhooks() as receiver:
        receiver.answers["/x"] = lambda _request: f"503 Busy\r\nretry-after: {pause}"
        attempt = await post_event(record(f"{receiver.url}/x"), "dlv_1", {}, OPEN)

    assert (attempt.status, attempt.delivered) == (503, False)


async def test_a_receiver_may_name_the_time_of_the_next_attempt() -> None:
    """`Retry-After` has seconds or a date."""
    until = format_datetime(datetime.now(UTC) + timedelta(minutes=20), usegmt=True)
    async with receive_webhooks() as receiver:
        receiver.answers["/x"] = lambda _request: f"429 Busy\r\nretry-after: {until}"
        attempt = await post_event(record(f"{receiver.url}/x"), "dlv_1", {}, OPEN)

    assert attempt.retry_after_s is not None
    assert 600 < attempt.retry_after_s <= 1200


async def test_an_attempt_that_fails_on_its_way_says_why(unused_tcp_port: int) -> None:
    """Whoever registered the webhook reads the reason, and no log of ours."""
    async with receive_webhooks() as receiver:
        receiver.answers["/x"] = lambda _request: "is no number"
        port = receiver.url.rpartition(":")[2]
        answers = await post_event(record(f"{receiver.url}/x"), "dlv_1", {}, OPEN)
        plain = await post_event(record(f"https://127.0.0.1:{port}/x"), "dlv_1", {}, HASTY)
    closed = await post_event(record(f"http://127.0.0.1:{unused_tcp_port}"), "dlv_1", {}, OPEN)

    assert (
        answers.reason == "127.0.0.1 cannot be read: what it answers is not HTTP, or ends too early"
    )
    assert closed.reason == "127.0.0.1 cannot be read: it refuses the connection"
    assert (plain.delivered, plain.hopeless) == (False, False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0x7f000001", "2130706433"])
async def test_nothing_is_sent_to_a_private_address_whatever_its_name(host: str) -> None:
    """The name is resolved once, and the connection would go to the address that was checked."""
    async with receive_webhooks() as receiver:
        port = receiver.url.rpartition(":")[2]
        attempt = await post_event(
            record(f"http://{host}:{port}/x"), "dlv_1", {}, HooksConfig(timeout_s=5)
        )

    assert (attempt.status, attempt.hopeless) == (None, True)
    assert "private address" in (attempt.reason or "")
    assert receiver.received == []


async def test_a_name_that_nobody_knows_may_be_known_later() -> None:
    attempt = await post_event(record("https://nowhere.invalid/x"), "dlv_1", {}, OPEN)

    assert (attempt.status, attempt.hopeless) == (None, False)


def test_no_text_of_a_record_shows_its_secret() -> None:
    assert SECRET not in repr(record("https://example.com"))
    assert SECRET not in str(record("https://example.com").secrets)
