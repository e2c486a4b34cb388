"""One event as the client hands it out: readable without a model, and typed where its type is known."""

import itertools
import time
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from fairlead_client.errors import MalformedAnswer
from fairlead_schema.delta import DELTA, Delta
from fairlead_schema.events import BY_TYPE, SessionEvent
from fairlead_schema.public_events import PREFIX

# Names and versions that differ between clients and the log.
_LOG_TYPES: Final = {
    "prompted": "prompt.promoted",
    "tool.success": "tool.succeeded",
    "permission.v2.asked": "permission.asked",
    "permission.v2.replied": "permission.replied",
    "question.v2.asked": "question.asked",
    "question.v2.replied": "question.replied",
    "question.v2.rejected": "question.rejected",
}
_LOG_VERSIONS: Final = {("step.ended", 2): 1, ("step.failed", 2): 1}
_COUNT: Final = itertools.count(1)
_ASKED: Final = frozenset({"permission.v2.asked", "question.v2.asked"})


class ReceivedEvent(NamedTuple):
    """A durable event, or a live fragment, which has no seq."""

    type: str
    """Without the prefix `session.next.`: `text.ended`, `permission.v2.asked`."""
    data: dict[str, Any]
    id: str
    seq: int | None = None
    """The place in the log, to read on after. Seqs rise with gaps, because some events are private."""
    version: int | None = None
    metadata: dict[str, Any] | None = None
    """`by` is the principal that caused the event."""

    @property
    def is_live(self) -> bool:
        """Whether this is a fragment. The event that ends its text holds the whole text."""
        return self.seq is None

    def to_model(self) -> SessionEvent | Delta | None:
        """The event as a model; None for a type or a form that this release does not know."""
        try:
            if self.seq is None:
                return DELTA.validate_python({**self.data, "type": self.type})
            type_ = _LOG_TYPES.get(self.type, self.type)
            version = self.version or 1
            kind = BY_TYPE.get((type_, _LOG_VERSIONS.get((type_, version), version)))
            return None if kind is None else kind.model_validate(self._log_data())
        except ValidationError:
            return None

    def _log_data(self) -> dict[str, Any]:
        """The data with the fields of the log."""
        if self.type == "prompted":
            return {**self.data, "created": self.data.get("timestamp")}
        if self.type in _ASKED:
            return {"agent": "", **self.data, "request": self.data}
        if self.type == "execution.released":
            return {"generation": 0, **self.data}
        return self.data


def parse_event(data: bytes, *, seq: str | None = None) -> ReceivedEvent:
    """One event from its JSON. Raises MalformedAnswer for anything else."""
    try:
        return event_of(from_json(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = int(seq) if seq is not None and seq.isdigit() else None
        raise MalformedAnswer("an event", str(error), seq=place) from error


def event_of(raw: dict[str, Any]) -> ReceivedEvent:
    """One event from an envelope."""
    durable = raw.get("durable")
    type_: str = raw["type"]
    seq, version = (None, None) if durable is None else (durable["seq"], durable["version"])
    return ReceivedEvent(
        type_.removeprefix(PREFIX), raw["data"], raw["id"], seq, version, raw.get("metadata")
    )


def fragment_of(data: bytes, session_id: str) -> ReceivedEvent:
    """One live fragment as a runner broadcasts it. Raises MalformedAnswer for anything else."""
    try:
        raw = from_json(data)
        type_ = raw.pop("type")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedAnswer("a fragment", str(error)) from error
    named = {"timestamp": time.time_ns() // 1_000_000, "sessionID": session_id}
    return ReceivedEvent(type_, {**named, **raw}, f"evt_live_{next(_COUNT)}")
