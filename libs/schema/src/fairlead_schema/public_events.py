"""Events as clients of the `/api` surface read them, with the names and versions they know."""

from typing import Any, Final

from pydantic import Field

from fairlead_schema.delta import Delta
from fairlead_schema.events import PermissionAsked, PromptPromoted, QuestionAsked
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.raw_records.raw_commit import RawEvent, raw_event
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
# How a failure arrived, which inputs a revert withdrew, and who owned a session: for services alone.
_HIDDEN: Final = ("raised", "withdrawn", "generation")
_ASKS: Final = frozenset({PermissionAsked, QuestionAsked})


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
    """One durable event as JSON for clients. The feed uses it, because it skips a model per event."""
    return raw_event_json(session_id, raw_event(recorded), by=recorded.by, delivery=delivery)


def raw_event_json(
    session_id: SessionId, raw: RawEvent, *, by: PrincipalName | None, delivery: str = "steer"
) -> dict[str, Any]:
    """One durable event as JSON for clients. Streams use it, because it needs no model at all.

    Clients expect the admission time as the timestamp of a promotion.
    """
    kind = raw.kind
    data: dict[str, Any] = {"timestamp": raw.time, "sessionID": session_id, **raw.data}
    if kind is PromptPromoted:
        data["timestamp"] = data.pop("created")
        data["delivery"] = delivery
    for name in _HIDDEN:
        data.pop(name, None)
    if kind in _ASKS:
        data |= data.pop("request")
        # Only services need to know whose rules decide.
        data.pop("agent", None)
    caller = {} if by is None else {"metadata": {"by": by}}
    return {
        "id": raw.id,
        "type": client_type(kind.type, notice=kind.visibility == "notice"),
        "data": data,
        **caller,
        "durable": {
            "aggregateID": session_id,
            "seq": raw.seq,
            "version": _CLIENT_VERSIONS.get(kind.type, kind.version),
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
