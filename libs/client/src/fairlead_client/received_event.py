"""One event as the client hands it out: readable without a model, and typed where its type is known."""

import itertools
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import from_json

from fairlead_client.errors import MalformedAnswer
from fairlead_schema.session_values.event_names import PREFIX

if TYPE_CHECKING:
    from fairlead_schema.delta import Delta
    from fairlead_schema.events import SessionEvent

_COUNT: Final = itertools.count(1)


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

    def to_model(self) -> "SessionEvent | Delta | None":
        """The event as a model; None for a type or a form that this release does not know."""
        # Most readers need no model, and the models of all events take long to load.
        from fairlead_client.answers.event_models import model_of_event  # noqa: PLC0415

        return model_of_event(self)


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
    data = raw["data"]
    if not isinstance(data, dict):
        raise TypeError("its data is no object")
    return ReceivedEvent(
        type_.removeprefix(PREFIX), data, raw["id"], seq, version, raw.get("metadata")
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
