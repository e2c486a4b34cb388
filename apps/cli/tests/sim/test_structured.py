"""The simulated provider gives structured output: a value that fits, unless a script says otherwise."""

import json
from typing import Any

import pytest

from fairlead_cli.sim.choice import choose_script
from fairlead_cli.sim.conversation import ConversationMessage, build_request
from fairlead_cli.sim.structured import find_wanted_output, sample_value
from fairlead_session.instructions.prompt_texts import COMPLAINT
from fairlead_session.structured.contract import OUTPUT_TOOL
from fairlead_session.structured.validation import find_violations

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"port": {"type": "string", "minLength": 3}},
    "properties": {
        "port": {"$ref": "#/$defs/port"},
        "kind": {"enum": ["sea", "river"]},
        "depths": {"type": "array", "items": {"type": "number", "minimum": 2}, "minItems": 2},
        "open": {"type": "boolean"},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "free": {"type": "string"},
    },
    "required": ["port", "kind", "depths", "open", "note"],
    "additionalProperties": False,
}


def test_the_value_fits_its_schema() -> None:
    assert find_violations(SCHEMA, sample_value(SCHEMA, SCHEMA)) == ()


@pytest.mark.parametrize(
    ("body", "by_tool"),
    [
        ({"tools": [{"name": OUTPUT_TOOL, "input_schema": SCHEMA}]}, True),
        ({"tools": [{"name": OUTPUT_TOOL, "parameters": SCHEMA, "type": "function"}]}, True),
        ({"tools": [{"function": {"name": OUTPUT_TOOL, "parameters": SCHEMA}}]}, True),
        (
            {
                "tools": [
                    {
                        "functionDeclarations": [
                            {"name": OUTPUT_TOOL, "parametersJsonSchema": SCHEMA}
                        ]
                    }
                ]
            },
            True,
        ),
        ({"text": {"format": {"schema": SCHEMA}}}, False),
        ({"response_format": {"json_schema": {"schema": SCHEMA}}}, False),
        ({"generationConfig": {"responseJsonSchema": SCHEMA}}, False),
    ],
)
def test_a_request_of_any_protocol_gets_such_a_value(body: dict[str, Any], by_tool: bool) -> None:  # noqa: FBT001
    """P-17: as a call of the tool for it, or as the text."""
    wanted = find_wanted_output(body)
    assert wanted is not None

    script = choose_script(_request(), wanted=wanted)

    text = script.calls[0].arguments if by_tool else script.answer
    assert find_violations(SCHEMA, json.loads(text)) == ()


def test_a_free_answer_is_an_echo() -> None:
    assert find_wanted_output({"tools": [{"name": "read"}], "text": {"verbosity": "low"}}) is None


def test_a_script_says_what_each_repair_answers() -> None:
    """P-17: an answer that was sent back selects the next turn of the script."""
    text = "[[sim: answer=one ; answer=two]] go"
    asked = ConversationMessage("user", text)
    said = ConversationMessage("assistant", "one")
    told = ConversationMessage("system", f"{COMPLAINT} no JSON. Answer again.")

    assert choose_script(_request(asked)).answer == "one"
    assert choose_script(_request(asked, said, told)).answer == "two"


def _request(*messages: ConversationMessage) -> Any:  # noqa: ANN401 - a request of the simulation
    given = messages or (ConversationMessage("user", "hi"),)
    return build_request(given, model="fast", stream=True)
