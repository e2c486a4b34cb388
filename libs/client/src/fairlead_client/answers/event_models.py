"""Events as typed models. Loading them takes longer than the rest of the client, so this is apart."""

from typing import Any, Final

from pydantic import ValidationError

from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.delta import DELTA, Delta
from fairlead_schema.events import BY_TYPE, SessionEvent
from fairlead_schema.session_values.event_names import CLIENT_TYPES, CLIENT_VERSIONS, NOTICE_TYPES

_LOG_TYPES: Final = {name: type_ for type_, name in (CLIENT_TYPES | NOTICE_TYPES).items()}
_LOG_VERSIONS: Final = dict.fromkeys(CLIENT_VERSIONS.items(), 1)
_ASKED: Final = frozenset({"permission.v2.asked", "question.v2.asked"})


def model_of_event(event: ReceivedEvent) -> SessionEvent | Delta | None:
    """The event as a model; None for a type or a form that this release does not know."""
    try:
        if event.seq is None:
            return DELTA.validate_python({**event.data, "type": event.type})
        type_ = _LOG_TYPES.get(event.type, event.type)
        version = event.version or 1
        kind = BY_TYPE.get((type_, _LOG_VERSIONS.get((type_, version), version)))
        return None if kind is None else kind.model_validate(_log_data(event))
    except ValidationError:
        return None


def _log_data(event: ReceivedEvent) -> dict[str, Any]:
    """The data with the fields of the log."""
    if event.type == "prompted":
        return {**event.data, "created": event.data.get("timestamp")}
    if event.type in _ASKED:
        return {"agent": "", **event.data, "request": event.data}
    if event.type == "execution.released":
        return {"generation": 0, **event.data}
    return event.data
