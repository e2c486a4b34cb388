"""Decodes commits of the log to JSON, checked as strictly as with models."""

from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field, Strict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from fairlead_schema.events import MANIFEST, SessionEvent
from fairlead_schema.raw_records.json_form import NoJsonForm, json_form
from fairlead_schema.raw_records.raw_commit import RawCommit, RawEvent, raw_commit
from fairlead_schema.record import LEVEL_NEWEST, decode


def decode_raw(payload: bytes) -> RawCommit:
    """Read one log message: the same as `raw_commit(decode(payload))`, with the same errors.

    It makes models only of a commit that this release would write differently: of an older or a newer
    release, of an import, or damaged.
    """
    try:
        raw = _COMMIT.validate_json(payload)
    except ValidationError:
        return raw_commit(decode(payload))
    if raw.get("imported") is not None:
        return raw_commit(decode(payload))
    by = raw.get("by")
    events = tuple(
        RawEvent(_KINDS[item["type"]], item["id"], item["seq"], item["time"], item["data"], by)
        for item in raw["events"]
    )
    return RawCommit(raw["id"], by, events)


_Text = Annotated[str, Strict()]
_Number = Annotated[int, Strict()]


def _event_form(kind: type[SessionEvent]) -> object:
    """A stored event of this class. Raises NoJsonForm."""
    fields = {
        "id": _Text,
        "seq": _Number,
        "type": Literal[kind.type],
        "version": Literal[kind.version],
        "time": _Number,
        "data": json_form(kind),
    }
    return TypedDict(f"Stored{kind.__name__}", fields)  # type: ignore[operator]


def _event_forms() -> dict[type[SessionEvent], object]:
    """The form of the newest version of each event. Every other version goes through the models."""
    newest = {kind.type: kind for kind in sorted(MANIFEST, key=lambda kind: kind.version)}
    forms: dict[type[SessionEvent], object] = {}
    for kind in newest.values():
        with suppress(NoJsonForm):
            forms[kind] = _event_form(kind)
    return forms


_FORMS: Final = _event_forms()
_KINDS: Final = {kind.type: kind for kind in _FORMS}
_EventForm: Any = reduce(or_, _FORMS.values())


class _CommitForm(TypedDict):
    id: _Text
    by: NotRequired[_Text]
    imported: NotRequired[Any]
    level: NotRequired[Annotated[_Number, Field(le=LEVEL_NEWEST)]]
    events: Annotated[
        list[Annotated[_EventForm, Field(discriminator="type")]],
        Field(min_length=1),
    ]


_COMMIT: Final = TypeAdapter(_CommitForm).validator
