"""Which JSON Schemas an answer may have: small, flat enough, without cycles, without other documents.

A schema comes from a caller, and every turn of its prompt uses it. So its whole cost is known before the
prompt is admitted: references are followed, and each use of a referenced part counts again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from fairlead_schema.json_depth import is_too_deep
from fairlead_session.structured.validation import SchemaDefect, compile_pattern, compile_schema

_MAPS: Final = ("properties", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_UNSUPPORTED: Final = (
    "patternProperties",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$anchor",
)


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """The most that a schema may have. `nodes` counts every part, as often as it is used."""

    bytes_max: int = 64 * 1024
    depth_max: int = 32
    nodes_max: int = 2_000


@dataclass(frozen=True, slots=True)
class SchemaRefused:
    """A schema that no answer may have, in one sentence."""

    reason: str


def check_schema(schema: dict[str, Any], limits: SchemaLimits) -> SchemaRefused | None:
    """Why a schema is refused; None if every provider and the validator can work with it."""
    if is_too_deep(schema):
        return SchemaRefused("the schema is nested too deeply")
    size = len(json.dumps(schema).encode())
    if size > limits.bytes_max:
        return SchemaRefused(f"the schema has {size} bytes, and {limits.bytes_max} are allowed")
    if schema.get("type") != "object":
        return SchemaRefused('the schema must say "type": "object" at its root')
    try:
        _Walk(schema, limits).visit(schema, 0, ())
        compile_schema(schema)
    except SchemaDefect as defect:
        return SchemaRefused(str(defect))
    return None


@dataclass(slots=True)
class _Walk:
    """Visits every part of a schema, and follows its references."""

    root: dict[str, Any]
    limits: SchemaLimits
    nodes: int = field(default=0, init=False)

    def visit(self, schema: object, depth: int, followed: tuple[str, ...]) -> None:
        """Count a part and everything in it. Raises SchemaDefect."""
        if not isinstance(schema, dict):
            return
        self.nodes += 1
        if self.nodes > self.limits.nodes_max:
            raise SchemaDefect(
                f"the schema has more than {self.limits.nodes_max} parts, with its references"
            )
        if depth > self.limits.depth_max:
            raise SchemaDefect(f"the schema has more than {self.limits.depth_max} levels")
        _check_keywords(schema, is_root=schema is self.root)
        for part in _parts(schema):
            self.visit(part, depth + 1, followed)
        reference = schema.get("$ref")
        if reference is not None:
            self._follow(reference, depth, followed)

    def _follow(self, reference: object, depth: int, followed: tuple[str, ...]) -> None:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise SchemaDefect(f"$ref may name only a part of the schema, not {reference!r}")
        if reference in followed:
            raise SchemaDefect(f"the schema is recursive at {reference}")
        target: object = self.root
        for key in unquote(reference[2:]).split("/"):
            name = key.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or name not in target:
                raise SchemaDefect(f"$ref {reference} refers to nothing")
            target = target[name]
        self.visit(target, depth + 1, (*followed, reference))


def _check_keywords(schema: dict[str, Any], *, is_root: bool) -> None:
    for keyword in _UNSUPPORTED:
        if keyword in schema:
            raise SchemaDefect(f"{keyword} is not supported")
    if "$id" in schema and not is_root:
        raise SchemaDefect("$id is supported only at the root")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        compile_pattern(pattern)


def _parts(schema: dict[str, Any]) -> Iterator[object]:
    """The parts of a schema. A definition counts where it is used."""
    for keyword in _MAPS:
        value = schema.get(keyword)
        if isinstance(value, dict):
            yield from value.values()
    for keyword in _LISTS:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from value
    yield from (schema[keyword] for keyword in _SINGLE if keyword in schema)
