"""Translates JSON Schema into Gemini's dialect of it, which lacks some keywords."""

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

_SAME_KEYWORDS = frozenset(
    {
        *("title", "description", "required", "minItems", "maxItems", "minLength", "maxLength"),
        *("minProperties", "maxProperties", "minimum", "maximum", "pattern", "nullable"),
    }
)
# These keywords have no effect on validation here, or are the default of the dialect.
_IGNORED_KEYWORDS = frozenset(
    {"$schema", "$id", "$comment", "default", "examples", "additionalProperties"}
)
_FORMATS = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})


class _Inexpressible(Exception):
    """The dialect cannot express a part of the schema."""


def translate_schema(schema: Schema) -> Schema | None:
    """The schema in the dialect, or None if the translation would admit other values."""
    try:
        return _keywords(schema) if schema.get("type") == "object" else None
    except (_Inexpressible, AttributeError, TypeError):
        return None


def _inner_schema(schema: Schema) -> Schema:
    """A schema inside another. An object must have properties, an array must have items."""
    translation = _keywords(schema)
    required = {"object": "properties", "array": "items"}.get(translation.get("type", ""))
    if required is not None and not translation.get(required):
        raise _Inexpressible(required)
    return translation


def _keywords(schema: Schema) -> Schema:
    translation: Schema = {}
    for name, value in schema.items():
        translation |= _keyword(name, value)
    if "required" in translation:
        # The API refuses a required property that is not declared.
        properties = translation.get("properties", {})
        required = [name for name in translation.pop("required") if name in properties]
        translation |= {"required": required} if required else {}
    return translation


def _keyword(name: str, value: Any) -> Schema:  # noqa: ANN401 - any JSON value
    match name:
        case "type":
            return _type(value)
        case "properties":
            return {"properties": {key: _inner_schema(inner) for key, inner in value.items()}}
        case "items" if isinstance(value, dict):
            return {"items": _inner_schema(value)}
        case "enum" | "const":
            return {"type": "string", "enum": _require_texts(value if name == "enum" else [value])}
        case "anyOf":
            return _union(value)
        case "format":
            return {"format": value} if value in _FORMATS else {}
        case "additionalProperties" if isinstance(value, dict):
            raise _Inexpressible(name)
        case _ if name in _SAME_KEYWORDS:
            return {name: value}
        case _ if name in _IGNORED_KEYWORDS:
            return {}
        case _:
            raise _Inexpressible(name)


def _type(value: str | list[str]) -> Schema:
    if isinstance(value, str):
        return {"type": value}
    kinds = [kind for kind in value if kind != "null"]
    if len(kinds) != 1:
        raise _Inexpressible("type")
    return {"type": kinds[0]} | ({"nullable": True} if "null" in value else {})


def _union(variants: list[Schema]) -> Schema:
    """A union. A variant `null` becomes the keyword `nullable`."""
    schemas = [_inner_schema(variant) for variant in variants if variant.get("type") != "null"]
    nullable = {"nullable": True} if len(schemas) < len(variants) else {}
    if len(schemas) == 1:
        return schemas[0] | nullable
    return {"anyOf": schemas} | nullable


def _require_texts(values: list[Any]) -> list[str]:
    """The dialect has only text enums, and a number as text would fail the tool's validation."""
    if not all(isinstance(value, str) for value in values):
        raise _Inexpressible("enum")
    return values
