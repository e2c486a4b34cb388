"""Which events of the feed a webhook gets."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead_schema.events import (
    ExecutionReleased,
    PermissionAsked,
    QuestionAsked,
    StepEnded,
    StepFailed,
)
from fairlead_schema.webhooks.event_names import WebhookEvent
from fairlead_session.execution.rest import REST_RULES

# The narrower of two kinds stands first: a session whose budget is used up rests too.
_TYPES: Final[Mapping[WebhookEvent, tuple[str, ...]]] = {
    "asked": (PermissionAsked.type, QuestionAsked.type),
    "turn-ended": (StepEnded.type,),
    "failed": (StepFailed.type,),
    "over-budget": (ExecutionReleased.type,),
    "rested": (ExecutionReleased.type,),
}
OVER_BUDGET: Final = "over-budget"
# A session that goes on by itself only pauses: a settlement, a timer or another runner continues it.
_PAUSES: Final = frozenset(
    reason for reason, rule in REST_RULES.items() if rule.goes_on and not rule.ends_interrupt
)


def feed_types(chosen: Iterable[WebhookEvent]) -> tuple[str, ...]:
    """The types of events that a webhook may want, as the log names them, each once."""
    return tuple(dict.fromkeys(type_ for kind in chosen for type_ in _TYPES[kind]))


def select_event(
    chosen: Iterable[WebhookEvent], type_: str, data: Mapping[str, Any]
) -> WebhookEvent | None:
    """Why a webhook gets an event; None if it does not. Of several choices that fit the narrower one counts."""
    choices = frozenset(chosen)
    fitting = (kind for kind in _TYPES if kind in choices and _fits(kind, type_, data))
    return next(fitting, None)


def _fits(kind: WebhookEvent, type_: str, data: Mapping[str, Any]) -> bool:
    if type_ not in _TYPES[kind]:
        return False
    match kind:
        case "over-budget":
            return data.get("reason") == OVER_BUDGET
        case "rested":
            return data.get("reason") not in _PAUSES
        case "asked" | "turn-ended" | "failed":
            return True
