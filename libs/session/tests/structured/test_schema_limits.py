"""Which schemas an answer may have."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_session.structured.schema_limits import SchemaLimits, check_schema
from fairlead_session.structured.validation import find_violations

LIMITS = SchemaLimits(bytes_max=4000, depth_max=8, nodes_max=60)
PORT: dict[str, Any] = {
    "type": "object",
    "properties": {"port": {"type": "string", "pattern": "^[A-Z]"}, "depth": {"type": "integer"}},
    "required": ["port"],
    "additionalProperties": False,
}


def object_of(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = object_of(inner=schema)
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """A small schema that a validator would take for ever to check."""
    defs: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, levels):
        part = {"$ref": f"#/$defs/a{level - 1}"}
        defs[f"a{level}"] = {"allOf": [part, part]}
    return object_of(x={"$ref": f"#/$defs/a{levels - 1}"}) | {"$defs": defs}


@pytest.mark.parametrize(
    "schema",
    [
        PORT,
        {"type": "object"},
        object_of(x={"$ref": "#/$defs/a~1b"}) | {"$defs": {"a/b": {"type": "string"}}},
        # A property may have the name of a keyword.
        object_of(**{"$ref": {"type": "string"}, "pattern": {"type": "string"}}),
        object_of(x={"enum": [{"$ref": "https://example.com"}]}),
        PORT | {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:port"},
    ],
)
def test_an_ordinary_schema_is_allowed(schema: dict[str, Any]) -> None:
    """P-17: with references to its own parts, and property names of any kind."""
    assert check_schema(schema, LIMITS) is None


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, '"type": "object"'),
        ({}, '"type": "object"'),
        (object_of(x={"const": "x" * 5000}), "bytes"),
        (nested(9), "more than 8 levels"),
        (nested(200), "too deeply"),
        (object_of(**{f"p{n}": {} for n in range(61)}), "more than 60 parts"),
        (object_of(x={"$ref": "#/properties/x"}), "recursive"),
        (
            object_of(x={"$ref": "#/$defs/tree"})
            | {"$defs": {"tree": object_of(left={"$ref": "#/$defs/tree"})}},
            "recursive",
        ),
        (object_of(x={"$ref": "#/$defs/none"}), "refers to nothing"),
        (object_of(x={"$ref": "https://example.com/s.json"}), "only a part of the schema"),
        (object_of(x={"$ref": "file:///etc/passwd"}), "only a part of the schema"),
        (object_of(x={"$ref": "#"}), "only a part of the schema"),
        (object_of(x={"$id": "https://example.com"}), "only at the root"),
        ({"type": "object", "patternProperties": {"(a+)+$": {}}}, "patternProperties"),
        (object_of(x={"$dynamicRef": "#node"}), "dynamicRef"),
        (object_of(x={"pattern": "(?=x)"}), "pattern"),
        (object_of(x={"type": "text"}), "not a JSON Schema"),
        ({"type": "object", "required": "port"}, "not a JSON Schema"),
    ],
)
def test_a_schema_beyond_the_limits_is_refused(schema: dict[str, Any], reason: str) -> None:
    """P-17: huge, deep, recursive, explosive or remote; nothing is ever fetched."""
    refused = check_schema(schema, LIMITS)

    assert refused is not None
    assert reason in refused.reason


def test_a_small_schema_that_explodes_is_refused_at_once() -> None:
    """P-17: each use of a part counts, so two to the fortieth power is never visited."""
    refused = check_schema(doubling(40), SchemaLimits(bytes_max=9000, depth_max=100, nodes_max=500))

    assert refused is not None
    assert "more than 500 parts" in refused.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYWORDS = st.sampled_from(
    ["type", "properties", "items", "$ref", "anyOf", "pattern", "required", "$defs", "not", "enum"]
)


@PROPERTY
@for_all(st.dictionaries(KEYWORDS, JSON), JSON)
def test_any_schema_is_refused_or_can_judge_any_value(
    schema: dict[str, Any], value: object
) -> None:
    """P-17: no schema that was admitted fails a runner."""
    typed = schema | {"type": "object"}

    if check_schema(typed, LIMITS) is None:
        assert isinstance(find_violations(typed, value), tuple)


def test_violations_name_the_place_and_are_few() -> None:
    assert find_violations(PORT, {"port": "Bergen", "depth": 7}) == ()
    assert find_violations(PORT, {"depth": "x"}) == (
        "depth: 'x' is not of type 'integer'",
        "'port' is a required property",
    )
    assert find_violations(PORT, {"port": "bergen"}) == ("port: 'bergen' does not match '^[A-Z]'",)
    many = object_of(**{f"p{n}": {"type": "string"} for n in range(20)})
    assert len(find_violations(many, {f"p{n}": n for n in range(20)})) == 5


def test_a_hostile_pattern_takes_no_longer_than_its_text() -> None:
    """P-17: the engine never goes back, so this returns at once."""
    schema = object_of(x={"type": "string", "pattern": "^(a+)+$"})

    assert check_schema(schema, LIMITS) is None
    assert find_violations(schema, {"x": "a" * 5000 + "!"})
