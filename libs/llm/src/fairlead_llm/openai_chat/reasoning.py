"""Reasoning on Chat: two text fields, one list of details, and how each goes back to its vendor.

A finished block's metadata says what its vendor wants to see again: `field` names the text field it
came in, `reasoning_details` holds the details with their signatures and encrypted data.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from fairlead_schema.provider.request import ReasoningPart

Detail: TypeAlias = dict[str, Any]

FIELDS = ("reasoning_content", "reasoning")
_SPOKEN = ("text", "summary")


def spoken(details: Iterable[Detail]) -> str:
    """The readable text of details."""
    told = (detail.get(name) for detail in details for name in _SPOKEN)
    return "".join(text for text in told if isinstance(text, str))


def merged(details: Iterable[Detail]) -> tuple[Detail, ...]:
    """Fragments joined by their index: texts concatenated, other values replaced by later ones."""
    whole: dict[tuple[str, str], Detail] = {}
    for position, detail in enumerate(details):
        key = str(detail.get("type")), str(detail.get("index", f"at {position}"))
        whole[key] = _joined(whole.get(key, {}), detail)
    return tuple(whole.values())


def metadata(field: str | None, details: tuple[Detail, ...]) -> dict[str, Any] | None:
    """What a finished block remembers; details say more than the field they repeat."""
    if details:
        return {"reasoning_details": list(details)}
    return None if field is None else {"field": field}


def replayed(parts: Sequence[ReasoningPart], *, in_loop: bool) -> dict[str, Any]:
    """The assistant message's reasoning fields: details always, plain text inside a tool loop.

    Vendors want plain reasoning back only while the turn is still calling tools.
    """
    known = [(part, part.metadata or {}) for part in parts]
    details = merged(detail for _, kept in known for detail in kept.get("reasoning_details", ()))
    if details:
        return {"reasoning_details": list(details)}
    texts = [(kept["field"], part.text) for part, kept in known if kept.get("field") in FIELDS]
    if not texts or not in_loop:
        return {}
    return {texts[0][0]: "".join(text for _, text in texts)}


def _joined(before: Detail, after: Detail) -> Detail:
    fresh = {name: value for name, value in after.items() if value is not None}
    texts = {
        name: before[name] + fresh[name]
        for name in _SPOKEN
        if isinstance(before.get(name), str) and isinstance(fresh.get(name), str)
    }
    return before | fresh | texts
