"""The kinds of events that a webhook may choose."""

from typing import Final, Literal, TypeAlias

WebhookEvent: TypeAlias = Literal["asked", "turn-ended", "failed", "over-budget", "rested"]
"""What a webhook may be told: a person is asked, a turn ended or failed, a budget is used up, a session rests."""

WEBHOOK_EVENTS: Final[tuple[WebhookEvent, ...]] = (
    "asked",
    "turn-ended",
    "failed",
    "over-budget",
    "rested",
)
