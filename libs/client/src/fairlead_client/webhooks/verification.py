"""Verifies the requests that Fairlead posts to a webhook, and reads their events."""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fairlead_schema.webhooks.signature import TOLERANCE_S, SignatureInvalid, verify

__all__ = ["SignatureInvalid", "WebhookDelivery", "verify_webhook"]

_KIND: Final = "fairleadevent"


class WebhookDelivery(NamedTuple):
    """A request that Fairlead signed."""

    id: str
    """The id of the delivery. A repeated delivery has the same id: act once for each."""
    event: dict[str, Any]
    """The CloudEvent. Its `data` is the event as streams and the feed have it."""

    @property
    def kind(self) -> str | None:
        """Why the webhook got it, such as `asked`; None for a trial."""
        kind: str | None = self.event.get(_KIND)
        return kind


def verify_webhook(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    tolerance_s: float = TOLERANCE_S,
    now_s: float | None = None,
) -> WebhookDelivery:
    """The delivery in a request that one of the secrets signed.

    Take the body as it came, before any parser; a text counts as UTF-8. A request that is older than
    `tolerance_s`, or of the future, is refused. Raises SignatureInvalid, and ValueError without a secret.
    """
    known = (secrets,) if isinstance(secrets, str) else tuple(secrets)
    if not known:
        raise ValueError("no secret is given: nothing could be verified")
    content = body.encode(errors="replace") if isinstance(body, str) else body
    now = time.time() if now_s is None else now_s
    id_ = verify(known, headers, content, now_s=now, tolerance_s=tolerance_s)
    try:
        event = json.loads(content)
    except ValueError as error:
        raise SignatureInvalid("the body is no JSON") from error
    return WebhookDelivery(id_, event)
