"""Posts one delivery: signed, to a guarded address, within a time. Redirects are not followed."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson

from fairlead_hooks import metrics
from fairlead_schema.identity.request_context import trace_headers
from fairlead_schema.ids import DeliveryId
from fairlead_schema.webhooks.record import WebhookRecord
from fairlead_schema.webhooks.signature import signed_headers
from fairlead_service.config.hooks import HooksConfig
from fairlead_service.traces import names
from fairlead_service.traces.tracer import Attributes, current_span, open_span
from fairlead_service.web import guard
from fairlead_service.web.pinned_request import RequestFailed, open_request
from fairlead_session.webhooks.attempts import DeliveryAttempt
from fairlead_session.webhooks.delivery import CONTENT_TYPE

AGENT: Final = "fairlead-webhook"
REDIRECTS: Final = range(300, 400)


async def post_event(
    record: WebhookRecord, id_: DeliveryId, event: Mapping[str, Any], hooks: HooksConfig
) -> DeliveryAttempt:
    """One attempt to deliver an event."""
    body = orjson.dumps(event)
    secrets = [one.secret for one in record.secrets]
    headers = {
        **signed_headers(secrets, id_, int(time.time()), body),
        "content-type": CONTENT_TYPE,
        "user-agent": AGENT,
    }
    with (
        metrics.SECONDS.time(),
        open_span(names.DELIVERY, "client", attributes=_webhook_attributes(record)),
    ):
        attempt = await _send(record.url, {**headers, **(trace_headers() or {})}, body, hooks)
        current_span().set({names.STATUS: attempt.status})
        if attempt.reason is not None:
            current_span().fail(_outcome(attempt))
    metrics.ATTEMPTS.labels(_outcome(attempt)).inc()
    return attempt


async def _send(
    url: str, headers: Mapping[str, str], body: bytes, hooks: HooksConfig
) -> DeliveryAttempt:
    try:
        target = guard.parse_target(url)
        async with (
            asyncio.timeout(hooks.timeout_s),
            open_request("POST", target, headers, private=hooks.private, content=body) as response,
        ):
            status, pause = response.status_code, response.headers.get("retry-after", "")
            return DeliveryAttempt(status, _reason(status), _read_pause(pause))
    except TimeoutError:
        return DeliveryAttempt(None, f"no answer within {hooks.timeout_s:g} s")
    except (guard.NameUnresolved, RequestFailed) as error:
        return DeliveryAttempt(None, str(error))
    except guard.AddressRefused as error:
        return DeliveryAttempt(None, str(error), hopeless=True)


def _webhook_attributes(record: WebhookRecord) -> Attributes:
    return {names.WEBHOOK: record.id}


def _read_pause(text: str) -> float | None:
    """The seconds of a `Retry-After`, which has a number or a date; None if it has neither."""
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date without an offset is in UTC.
    return until.replace(tzinfo=until.tzinfo or UTC).timestamp() - time.time()


def _reason(status: int) -> str | None:
    if status < REDIRECTS.start:
        return None
    if status in REDIRECTS:
        return f"the receiver redirects ({status}), which is not followed: change the URL"
    return f"the receiver answered with status {status}"


def _outcome(attempt: DeliveryAttempt) -> str:
    if attempt.status is None:
        return "refused" if attempt.hopeless else "unreachable"
    return f"{attempt.status // 100}xx"
