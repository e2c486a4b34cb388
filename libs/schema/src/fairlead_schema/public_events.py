"""Events as clients of the `/api` surface read them, with the names and versions they know."""

from typing import Any, Final

from pydantic import Field

from fairlead_schema.delta import Delta
from fairlead_schema.events import PermissionAsked, PromptPromoted, QuestionAsked
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.record import Recorded

PREFIX: Final = "session.next."

# Events whose names differ between the log and existing clients.
_CLIENT_TYPES: Final = {"prompt.promoted": "prompted", "tool.succeeded": "tool.success"}
# Events that existing clients know in their second version.
_CLIENT_VERSIONS: Final = {"step.ended": 2, "step.failed": 2}
# Notices have client names without the session prefix.
_NOTICE_TYPES: Final = {
    "permission.asked": "permission.v2.asked",
    "permission.replied": "permission.v2.replied",
    "question.asked": "question.v2.asked",
    "question.replied": "question.v2.replied",
    "question.rejected": "question.v2.rejected",
}


class DurableRef(Model):
    """The place of an event in its session's log."""

    aggregate_id: SessionId
    seq: int
    version: int


class EventEnvelope(Model):
    """One event as clients read it, from history, the stream or the feed."""

    id: str
    type: str
    data: dict[str, Any]
    durable: DurableRef | None = None
    location: LocationRef | None = None
    metadata: dict[str, Any] | None = Field(default=None)


def client_type(type_: str, *, notice: bool = False) -> str:
    """The client name of an event type."""
    if notice:
        return _NOTICE_TYPES.get(type_, type_)
    return PREFIX + _CLIENT_TYPES.get(type_, type_)


def public_event_json(
    session_id: SessionId, recorded: Recorded, *, delivery: str = "steer"
) -> dict[str, Any]:
    """One durable event as JSON for clients. Streams use it, because it skips a model per event.

    Clients expect the admission time as the timestamp of a promotion.
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
    data.pop("raised", None)  # Only services need to know how a failure arrived.
    if isinstance(event, PermissionAsked | QuestionAsked):
        data |= data.pop("request")
        # Only services need to know whose rules decide.
        data.pop("agent", None)
    caller = {} if recorded.by is None else {"metadata": {"by": recorded.by}}
    return {
        "id": recorded.id,
        "type": client_type(event.type, notice=event.visibility == "notice"),
        "data": data,
        **caller,
        "durable": {
            "aggregateID": session_id,
            "seq": recorded.seq,
            "version": _CLIENT_VERSIONS.get(event.type, event.version),
        },
    }


def public_event(
    session_id: SessionId, recorded: Recorded, *, delivery: str = "steer"
) -> EventEnvelope:
    """One durable event for clients."""
    return EventEnvelope.model_validate(public_event_json(session_id, recorded, delivery=delivery))


def public_delta(session_id: SessionId, event_id: str, delta: Delta, *, at: int) -> EventEnvelope:
    """One live fragment for clients. It has no place in the log."""
    data = delta.wire()
    type_ = data.pop("type")
    return EventEnvelope(
        id=event_id,
        type=PREFIX + type_,
        data={"timestamp": at, "sessionID": session_id, **data},
    )
