"""A tool's input schema, in the form that every provider accepts at its root."""

from typing import Any


def rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with an object at its root: a union of objects becomes one that admits them all."""
    variants = schema.get("anyOf") or schema.get("oneOf")
    if not variants:
        return {"type": "object", "properties": {}} | schema
    properties: dict[str, Any] = {}
    for variant in variants:
        properties |= variant.get("properties", {})
    required = set.intersection(*(set(variant.get("required", ())) for variant in variants))
    kept = {name: held for name, held in schema.items() if name not in {"anyOf", "oneOf"}}
    return kept | {
        "type": "object",
        "properties": kept.get("properties", {}) | properties,
        "required": sorted(required.union(kept.get("required", ()))),
        "additionalProperties": False,
    }
