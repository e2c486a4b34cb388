"""Schemas of other services: checked, bounded, and without references to other places."""

import pytest
from pydantic import ValidationError

from fairlead_tools.registry.call_input import describe_errors
from fairlead_tools.registry.json_schema import (
    SCHEMA_BYTES_MAX,
    Document,
    document_model,
    input_model,
)
from fairlead_tools.registry.tool import InvalidTool

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/age"}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}


def complaint(kind: type[Document], value: object) -> str:
    with pytest.raises(ValidationError) as error:
        kind.model_validate(value)
    return describe_errors(error.value)


def test_what_fits_is_kept_as_it_is() -> None:
    """J-19: the executor gets the decoded input, and the log gets the encoded output."""
    kind = input_model(PERSON)

    document = kind.model_validate({"name": "Ada", "age": 36})

    assert document.root == document.model_dump(mode="json") == {"name": "Ada", "age": 36}
    assert kind.model_json_schema() == PERSON


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "'name' is a required property"),
        ({"name": 3}, "name: 3 is not of type 'string'"),
        ({"name": "a", "age": -1}, "age: -1 is less than the minimum of 0"),
        ({"name": "a", "b": 1}, "Additional properties are not allowed"),
        ([], "[] is not of type 'object'"),
    ],
)
def test_what_does_not_fit_says_where_and_why(value: object, message: str) -> None:
    """J-17: the error text is for the model."""
    assert message in complaint(input_model(PERSON), value)


def test_a_long_complaint_is_cut() -> None:
    """J-17: the error does not repeat the whole input."""
    assert len(complaint(document_model({"type": "integer"}), "x " * 100_000)) < 1000


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": "object", "properties": 3},
        {"type": "object", "$ref": "http://127.0.0.1/schema.json"},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "patternProperties": {"(a+)+$": {}}},
        {"type": "object", "description": "x" * SCHEMA_BYTES_MAX},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, object]) -> None:
    """J-01: the refusal comes at registration."""
    with pytest.raises(InvalidTool):
        input_model(schema)


def test_a_pattern_cannot_hold_the_worker_up() -> None:
    """J-17: the service that registered the pattern checks it."""
    kind = document_model({"type": "string", "pattern": "^(a+)+$"})

    assert kind.model_validate("a" * 64 + "!").root.endswith("!")


def test_a_reference_to_nothing_and_endless_nesting_are_complaints() -> None:
    """J-18: such a schema gives an error and no crash."""
    assert "refers to nothing" in complaint(document_model({"$ref": "#/nowhere"}), {})
    endless = document_model(
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}
    )
    assert "nested too deeply" in complaint(endless, {})


def test_what_becomes_of_the_callers_schema_later_changes_nothing() -> None:
    """J-39: changes to the caller's schema or to the returned one have no effect."""
    schema: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    kind = input_model(schema)

    schema["required"] = ["b"]
    kind.model_json_schema()["properties"].clear()

    assert kind.model_validate({}).root == {}
    assert kind.model_json_schema() == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    }
