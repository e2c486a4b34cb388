"""The public dialect: how log events read for clients of the `/api` surface."""

from typing import Any, Final

from fairlead_schema.api import EventEnvelope
from fairlead_schema.delta import Delta
from fairlead_schema.events import PermissionAsked, PromptPromoted, QuestionAsked
from fairlead_schema.ids import SessionId
from fairlead_schema.record import Recorded

PREFIX: Final = "session.next."

# Where the names of the log and of existing clients differ.
_RENAMED: Final = {"prompt.promoted": "prompted", "tool.succeeded": "tool.success"}
# Existing clients know these under their second version.
_VERSIONS: Final = {"step.ended": 2, "step.failed": 2}
# Notices have names of their own, outside the session prefix.
_NOTICES: Final = {
    "permission.asked": "permission.v2.asked",
    "permission.replied": "permission.v2.replied",
    "question.asked": "question.v2.asked",
    "question.replied": "question.v2.replied",
    "question.rejected": "question.v2.rejected",
}


def public_type(type_: str, *, notice: bool = False) -> str:
    """The name clients know an event by."""
    if notice:
        return _NOTICES.get(type_, type_)
    return PREFIX + _RENAMED.get(type_, type_)


def told(session_id: SessionId, recorded: Recorded, *, delivery: str = "steer") -> dict[str, Any]:
    """One durable event for clients, as JSON has it: the form for streams that carry many.

    A promotion shows its admission time, as they expect.
    """
    event = recorded.event
    data: dict[str, Any] = {
        "timestamp": recorded.time,
        "sessionID": session_id,
        **event.wire(),
    }
    if isinstance(event, PromptPromoted):
        data["timestamp"] = data.pop("created")
        data["delivery"] = delivery
    data.pop("raised", None)  # How a failure reached us is between the services.
    if isinstance(event, PermissionAsked | QuestionAsked):
        data |= data.pop("request")
        # Whose rules decide is the service's own business.
        data.pop("agent", None)
    return {
        "id": recorded.id,
        "type": public_type(event.type, notice=event.visibility == "notice"),
        "data": data,
        "durable": {
            "aggregateID": session_id,
            "seq": recorded.seq,
            "version": _VERSIONS.get(event.type, event.version),
        },
    }


def envelope(
    session_id: SessionId, recorded: Recorded, *, delivery: str = "steer"
) -> EventEnvelope:
    """One durable event for clients, as a value."""
    return EventEnvelope.model_validate(told(session_id, recorded, delivery=delivery))


def live(session_id: SessionId, event_id: str, delta: Delta, *, at: int) -> EventEnvelope:
    """One live fragment for clients; it has no place in the log."""
    data = delta.wire()
    type_ = data.pop("type")
    return EventEnvelope(
        id=event_id,
        type=PREFIX + type_,
        data={"timestamp": at, "sessionID": session_id, **data},
    )
