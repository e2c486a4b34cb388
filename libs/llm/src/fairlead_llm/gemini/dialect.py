"""Gemini's dialect of JSON Schema: what it can say exactly, and what it cannot."""

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

_AS_IS = frozenset(
    {
        *("title", "description", "required", "minItems", "maxItems", "minLength", "maxLength"),
        *("minProperties", "maxProperties", "minimum", "maximum", "pattern", "nullable"),
    }
)
# Notes that bind nobody, or that the dialect takes for granted.
_IDLE = frozenset({"$schema", "$id", "$comment", "default", "examples", "additionalProperties"})
_FORMATS = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})


class _Unspeakable(Exception):
    """The dialect has no word for a part of the schema."""


def translated(schema: Schema) -> Schema | None:
    """The schema in the dialect, or None where that would change what it admits."""
    try:
        return _members(schema) if schema.get("type") == "object" else None
    except (_Unspeakable, AttributeError, TypeError):
        return None


def _object(schema: Schema) -> Schema:
    """A schema inside another. Objects and arrays must say what they hold."""
    said = _members(schema)
    holder = {"object": "properties", "array": "items"}.get(said.get("type", ""))
    if holder is not None and not said.get(holder):
        raise _Unspeakable(holder)
    return said


def _members(schema: Schema) -> Schema:
    said: Schema = {}
    for name, value in schema.items():
        said |= _said(name, value)
    if "required" in said:
        # A required property that is not declared is refused.
        known = [name for name in said.pop("required") if name in said.get("properties", {})]
        said |= {"required": known} if known else {}
    return said


def _said(name: str, value: Any) -> Schema:  # noqa: ANN401 - any JSON value
    match name:
        case "type":
            return _typed(value)
        case "properties":
            return {"properties": {key: _object(held) for key, held in value.items()}}
        case "items" if isinstance(value, dict):
            return {"items": _object(value)}
        case "enum" | "const":
            return {"type": "string", "enum": _texts(value if name == "enum" else [value])}
        case "anyOf":
            return _union(value)
        case "format":
            return {"format": value} if value in _FORMATS else {}
        case "additionalProperties" if isinstance(value, dict):
            raise _Unspeakable(name)
        case _ if name in _AS_IS:
            return {name: value}
        case _ if name in _IDLE:
            return {}
        case _:
            raise _Unspeakable(name)


def _typed(value: str | list[str]) -> Schema:
    if isinstance(value, str):
        return {"type": value}
    kinds = [kind for kind in value if kind != "null"]
    if len(kinds) != 1:
        raise _Unspeakable("type")
    return {"type": kinds[0]} | ({"nullable": True} if "null" in value else {})


def _union(variants: list[Schema]) -> Schema:
    """A union with null is a nullable one."""
    kept = [_object(one) for one in variants if one.get("type") != "null"]
    nullable = {"nullable": True} if len(kept) < len(variants) else {}
    if len(kept) == 1:
        return kept[0] | nullable
    return {"anyOf": kept} | nullable


def _texts(values: list[Any]) -> list[str]:
    """Only texts can be enumerated: numbers written as text would not pass our own validation."""
    if not all(isinstance(value, str) for value in values):
        raise _Unspeakable("enum")
    return values
