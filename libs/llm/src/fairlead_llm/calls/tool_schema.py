"""Tool input schemas with an object at the root, because every provider requires one."""

from typing import Any


def with_object_root(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with an object at its root. A union becomes an object that admits each variant."""
    variants = schema.get("anyOf") or schema.get("oneOf")
    if not variants:
        return {"type": "object", "properties": {}} | schema
    properties: dict[str, Any] = {}
    for variant in variants:
        properties |= variant.get("properties", {})
    required = set.intersection(*(set(variant.get("required", ())) for variant in variants))
    rest = {name: value for name, value in schema.items() if name not in {"anyOf", "oneOf"}}
    return rest | {
        "type": "object",
        "properties": rest.get("properties", {}) | properties,
        "required": sorted(required.union(rest.get("required", ()))),
        "additionalProperties": False,
    }
