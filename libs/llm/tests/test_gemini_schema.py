"""Tool schemas for Gemini: in its dialect where that is exact, else as they are."""

from typing import Any

import pytest

from fairlead_llm import gemini
from fairlead_schema.provider.request import ModelRequest, ToolDefinition

TEXT = {"type": "string"}


def declared(schema: dict[str, Any]) -> dict[str, Any]:
    request = ModelRequest("m", tools=(ToolDefinition("t", "T.", schema),))
    function: dict[str, Any] = gemini.body(request)["tools"][0]["functionDeclarations"][0]
    return function


def of(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with one property of this schema."""
    return {"type": "object", "properties": {"x": schema}}


def test_a_tool_without_parameters_declares_none() -> None:
    assert declared({"type": "object", "properties": {}, "additionalProperties": False}) == {
        "name": "t",
        "description": "T.",
    }


def test_words_that_the_dialect_takes_for_granted_are_dropped() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"x": TEXT | {"default": "a", "format": "uuid", "minLength": 1}},
        "required": ["x", "undeclared"],
        "additionalProperties": False,
    }

    assert declared(schema)["parameters"] == {
        "type": "object",
        "properties": {"x": TEXT | {"minLength": 1}},
        "required": ["x"],
    }


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": ["string", "null"]}, TEXT | {"nullable": True}),
        ({"anyOf": [TEXT, {"type": "null"}]}, TEXT | {"nullable": True}),
        ({"anyOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        ({"const": "a"}, TEXT | {"enum": ["a"]}),
        ({"enum": ["a", "b"], "description": "d"}, TEXT | {"enum": ["a", "b"], "description": "d"}),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": TEXT}),
        (of(TEXT), of(TEXT)),
    ],
)
def test_what_the_dialect_can_say_is_said_in_it(
    schema: dict[str, Any], said: dict[str, Any]
) -> None:
    assert declared(of(schema))["parameters"] == of(said)


@pytest.mark.parametrize(
    "schema",
    [
        of({"enum": [1, 2]}),
        of({"type": ["string", "integer"]}),
        of({"$ref": "#/$defs/a"}) | {"$defs": {"a": TEXT}},
        of({"type": "object", "additionalProperties": TEXT}),
        of({"type": "object"}),
        of({"type": "array"}),
        of({"type": "array", "prefixItems": [TEXT]}),
        of({"oneOf": [TEXT, {"type": "integer"}]}),
        of({"type": "array", "items": [TEXT]}),
        {"anyOf": [of(TEXT), of({"type": "integer"})]},
    ],
)
def test_what_the_dialect_would_change_goes_as_plain_json_schema(schema: dict[str, Any]) -> None:
    """Numbers enumerated as text, for one, would make a right answer fail our own validation."""
    function = declared(schema)

    assert function["parametersJsonSchema"] == schema
    assert "parameters" not in function
