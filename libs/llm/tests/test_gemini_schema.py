"""Tool schemas for Gemini: in its dialect if the translation is exact, else unchanged."""

from typing import Any

import pytest

from fairlead_llm import gemini
from fairlead_schema.provider.request import ModelRequest, ToolDefinition

TEXT = {"type": "string"}


def declare_function(schema: dict[str, Any]) -> dict[str, Any]:
    request = ModelRequest("m", tools=(ToolDefinition("t", "T.", schema),))
    function: dict[str, Any] = gemini.body(request)["tools"][0]["functionDeclarations"][0]
    return function


def object_with(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with one property of this schema."""
    return {"type": "object", "properties": {"x": schema}}


def test_a_tool_without_parameters_declares_none() -> None:
    assert declare_function(
        {"type": "object", "properties": {}, "additionalProperties": False}
    ) == {
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

    assert declare_function(schema)["parameters"] == {
        "type": "object",
        "properties": {"x": TEXT | {"minLength": 1}},
        "required": ["x"],
    }


@pytest.mark.parametrize(
    ("schema", "translation"),
    [
        ({"type": ["string", "null"]}, TEXT | {"nullable": True}),
        ({"anyOf": [TEXT, {"type": "null"}]}, TEXT | {"nullable": True}),
        ({"anyOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}),
        ({"const": "a"}, TEXT | {"enum": ["a"]}),
        ({"enum": ["a", "b"], "description": "d"}, TEXT | {"enum": ["a", "b"], "description": "d"}),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": TEXT}),
        (object_with(TEXT), object_with(TEXT)),
    ],
)
def test_what_the_dialect_can_say_is_said_in_it(
    schema: dict[str, Any], translation: dict[str, Any]
) -> None:
    assert declare_function(object_with(schema))["parameters"] == object_with(translation)


@pytest.mark.parametrize(
    "schema",
    [
        object_with({"enum": [1, 2]}),
        object_with({"type": ["string", "integer"]}),
        object_with({"$ref": "#/$defs/a"}) | {"$defs": {"a": TEXT}},
        object_with({"type": "object", "additionalProperties": TEXT}),
        object_with({"type": "object"}),
        object_with({"type": "array"}),
        object_with({"type": "array", "prefixItems": [TEXT]}),
        object_with({"oneOf": [TEXT, {"type": "integer"}]}),
        object_with({"type": "array", "items": [TEXT]}),
        {"anyOf": [object_with(TEXT), object_with({"type": "integer"})]},
    ],
)
def test_what_the_dialect_would_change_goes_as_plain_json_schema(schema: dict[str, Any]) -> None:
    """For example, a number enum as text would make a correct answer fail validation."""
    function = declare_function(schema)

    assert function["parametersJsonSchema"] == schema
    assert "parameters" not in function
