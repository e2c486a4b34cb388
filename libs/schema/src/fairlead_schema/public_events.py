"""Events as clients of the `/api` surface read them, with the names and versions they know."""

from functools import cache
from typing import Any, Final, NamedTuple

from pydantic import Field

from fairlead_schema.delta import Delta
from fairlead_schema.events import PermissionAsked, PromptPromoted, QuestionAsked, SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model
from fairlead_schema.raw_records.raw_commit import RawEvent, raw_event
from fairlead_schema.record import Recorded
from fairlead_schema.session_values.event_names import CLIENT_VERSIONS, PREFIX, client_type

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


def public_event_json(
    session_id: SessionId, recorded: Recorded, *, delivery: str = "steer"
) -> dict[str, Any]:
    """One durable event as JSON for clients."""
    return raw_event_json(session_id, raw_event(recorded), by=recorded.by, delivery=delivery)


def raw_event_json(
    session_id: SessionId, raw: RawEvent, *, by: PrincipalName | None, delivery: str = "steer"
) -> dict[str, Any]:
    """One durable event as JSON for clients. Streams and the feed use it, because it needs no model at all.

    Clients expect the admission time as the timestamp of a promotion.
    """
    kind = raw.kind
    type_, version, hidden = _public_form(kind)
    data: dict[str, Any] = {"timestamp": raw.time, "sessionID": session_id, **raw.data}
    if kind is PromptPromoted:
        data["timestamp"] = data.pop("created")
        data["delivery"] = delivery
    for name in hidden:
        data.pop(name, None)
    if kind in _ASKS:
        data |= data.pop("request")
        # Only services need to know whose rules decide.
        data.pop("agent", None)
    caller = {} if by is None else {"metadata": {"by": by}}
    return {
        "id": raw.id,
        "type": type_,
        "data": data,
        **caller,
        "durable": {
            "aggregateID": session_id,
            "seq": raw.seq,
            "version": version,
        },
    }


class _PublicForm(NamedTuple):
    """What clients see of every event of a class: its name, its version, and which fields they do not see."""

    type: str
    version: int
    hidden: tuple[str, ...]


@cache
def _public_form(kind: type[SessionEvent]) -> _PublicForm:
    names = {field.alias or name for name, field in kind.model_fields.items()}
    return _PublicForm(
        client_type(kind.type, notice=kind.visibility == "notice"),
        CLIENT_VERSIONS.get(kind.type, kind.version),
        tuple(name for name in _HIDDEN if name in names),
    )


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
