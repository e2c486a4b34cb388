"""The arguments of a call: unknown fields are ignored and named, all other mistakes are refused."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from fairlead_schema.events import ToolSucceeded
from fairlead_schema.tools.content import TextContent
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_tools.builtin.bash import BashInput
from fairlead_tools.builtin.read import ReadInput
from fairlead_tools.registry.call_input import InvalidArguments, decode_input, ignored_note
from fairlead_tools.registry.json_schema import input_model
from fairlead_tools.registry.outcome import encode_output
from services.tools.tests.conftest import Harness, tool


class Choice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    label: str


class Keyed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: str


class Choices(BaseModel):
    model_config = ConfigDict(extra="forbid")

    choices: list[Choice]
    default: int = 0


def test_a_known_input_is_taken_whole() -> None:
    value, ignored = decode_input(BashInput, {"command": "ls"})

    assert (value, ignored) == (BashInput(command="ls"), ())


def test_a_field_that_the_tool_does_not_have_is_ignored_and_named() -> None:
    value, ignored = decode_input(ReadInput, {"path": "a.py", "description": "look", "why": 1})

    assert (value, ignored) == (ReadInput(path="a.py"), ("description", "why"))


def test_an_unknown_field_deep_inside_is_ignored_too() -> None:
    arguments = {"choices": [{"label": "a"}, {"label": "b", "hint": {"x": 1}}]}

    value, ignored = decode_input(Choices, arguments)

    assert value == Choices(choices=[Choice(label="a"), Choice(label="b")])
    assert ignored == ("choices.1.hint",)
    assert arguments["choices"][1] == {"label": "b", "hint": {"x": 1}}, "the call is not changed"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"file": "a"}, "path: Field required"), ({"path": 7, "file": "a"}, "path: ")],
)
def test_a_missing_or_wrong_field_is_refused_and_only_that_is_named(
    arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        decode_input(ReadInput, arguments)

    assert str(refusal.value).startswith(named)
    assert "file" not in str(refusal.value)


@pytest.mark.parametrize("value", ['{"path": "a', ["a.py"], 7, None])
def test_arguments_that_are_no_object_are_refused_with_what_was_expected(value: object) -> None:
    """D13: the message was `path: Field required; value: Extra inputs are not permitted`."""
    with pytest.raises(InvalidArguments) as refusal:
        decode_input(ReadInput, {"value": value})

    assert "not a JSON object" in str(refusal.value)
    assert "path, offset, limit" in str(refusal.value)


def test_a_tool_with_a_field_named_value_takes_it() -> None:
    class Valued(BaseModel):
        value: str

    assert decode_input(Valued, {"value": "x"}).value == Valued(value="x")


def test_a_closed_schema_of_another_service_ignores_what_it_does_not_name() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }

    value, ignored = decode_input(input_model(schema), {"n": 4, "note": "x"})

    assert (value.model_dump(), ignored) == ({"n": 4}, ("note",))


def test_an_open_schema_of_another_service_gets_every_field() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    value, ignored = decode_input(input_model(schema), {"n": 4, "note": "x"})

    assert (value.model_dump(), ignored) == ({"n": 4, "note": "x"}, ())


def test_a_validator_sees_the_input_without_the_unknown_fields() -> None:
    class Strict(Choices):
        @override
        def model_post_init(self, _context: object) -> None:
            if not self.choices:
                raise ValueError("choose something")

    with pytest.raises(InvalidArguments, match="choose something"):
        decode_input(Strict, {"choices": [], "extra": 1})


async def test_the_model_sees_its_result_and_the_fields_that_were_ignored(harness: Harness) -> None:
    echo_tool = tool(input=Keyed)
    harness.registry.register(echo_tool)
    await harness.call(echo_tool, key="hello", description="why")

    await harness.serve_all()

    (settled,) = [event for event in await harness.events() if isinstance(event, ToolSucceeded)]
    assert settled.content[0] == TextContent(text=ignored_note(["description"]))
    assert settled.structured == {"said": "hello"}


def test_a_structured_result_stands_beside_the_note() -> None:
    outcome = encode_output(tool(), {"said": "hello"}, ignored=("description",))

    assert isinstance(outcome, Succeeded)
    assert outcome.structured == {"said": "hello"}
    note, shown = outcome.content
    assert note == TextContent(text="[Ignored unknown arguments: description]")
    assert shown == TextContent(text='{"said":"hello"}')
