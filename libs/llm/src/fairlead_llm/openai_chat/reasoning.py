"""Reasoning of Chat Completions: two text fields and a list of details, and their way back.

The metadata of a finished block holds what its vendor wants back: `field` is the name of its text
field, `reasoning_details` are the details with their signatures and encrypted data.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from fairlead_schema.provider.request import ReasoningPart

Detail: TypeAlias = dict[str, Any]

FIELDS = ("reasoning_content", "reasoning")
_TEXT_FIELDS = ("text", "summary")


def readable_text(details: Iterable[Detail]) -> str:
    """The readable text of details."""
    texts = (detail.get(name) for detail in details for name in _TEXT_FIELDS)
    return "".join(text for text in texts if isinstance(text, str))


def merge_details(details: Iterable[Detail]) -> tuple[Detail, ...]:
    """Join fragments of the same index: texts are concatenated, other values replaced."""
    by_index: dict[tuple[str, str], Detail] = {}
    for position, detail in enumerate(details):
        key = str(detail.get("type")), str(detail.get("index", f"at {position}"))
        by_index[key] = _merge_detail(by_index.get(key, {}), detail)
    return tuple(by_index.values())


def metadata(field: str | None, details: tuple[Detail, ...]) -> dict[str, Any] | None:
    """The metadata of a finished block. Details win, because they repeat the text of the field."""
    if details:
        return {"reasoning_details": list(details)}
    return None if field is None else {"field": field}


def message_fields(parts: Sequence[ReasoningPart], *, in_loop: bool) -> dict[str, Any]:
    """The reasoning fields of an assistant message: details always, plain text in a tool loop.

    Vendors want plain reasoning back only while the model still calls tools.
    """
    pairs = [(part, part.metadata or {}) for part in parts]
    details = merge_details(
        detail for _, metadata in pairs for detail in metadata.get("reasoning_details", ())
    )
    if details:
        return {"reasoning_details": list(details)}
    texts = [
        (metadata["field"], part.text)
        for part, metadata in pairs
        if metadata.get("field") in FIELDS
    ]
    if not texts or not in_loop:
        return {}
    return {texts[0][0]: "".join(text for _, text in texts)}


def _merge_detail(before: Detail, after: Detail) -> Detail:
    fields = {name: value for name, value in after.items() if value is not None}
    texts = {
        name: before[name] + fields[name]
        for name in _TEXT_FIELDS
        if isinstance(before.get(name), str) and isinstance(fields.get(name), str)
    }
    return before | fields | texts
