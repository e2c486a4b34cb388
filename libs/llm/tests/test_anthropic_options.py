"""Tools, generation controls and options of a Messages body."""

from typing import Any

import pytest

from fairlead_llm import anthropic_messages
from fairlead_llm.errors import UnsendableRequest
from fairlead_schema.provider.request import (
    ForcedTool,
    Generation,
    ModelRequest,
    TextPart,
    ToolChoice,
    ToolDefinition,
    UserTurn,
)

LOOK = ToolDefinition("look", "Looks.", {"type": "object", "properties": {}})
UNCACHED = {"cache": False}


def body(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    fields.setdefault("options", UNCACHED)
    turn = UserTurn((TextPart("hi"),))
    return anthropic_messages.body(ModelRequest("m", turns=(turn,), **fields))


def test_a_union_at_the_root_of_a_schema_becomes_one_object() -> None:
    union = {
        "anyOf": [
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {}}, "required": ["a"]},
        ]
    }

    schema = body(tools=(ToolDefinition("t", "", union),))["tools"][0]["input_schema"]

    assert schema["type"] == "object"
    assert "anyOf" not in schema
    assert schema["required"] == ["a"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("required", {"type": "any"}),
        (ForcedTool("look"), {"type": "tool", "name": "look"}),
    ],
)
def test_each_tool_choice_has_its_form(choice: ToolChoice, expected: object) -> None:
    assert body(tools=(LOOK,), tool_choice=choice).get("tool_choice") == expected


def test_the_choice_of_no_tool_removes_them() -> None:
    """O-28: the API has no value for the choice `none`."""
    request_body = body(tools=(LOOK,), tool_choice="none")

    assert "tools" not in request_body
    assert "tool_choice" not in request_body


def test_hosted_tools_of_the_options_follow_the_requests_own() -> None:
    search = {"type": "web_search_20260318", "name": "web_search"}

    tools = body(tools=(LOOK,), options=UNCACHED | {"tools": [search]})["tools"]

    assert tools[0]["name"] == "look"
    assert tools[1] == search


def test_generation_controls_are_named_as_the_wire_names_them() -> None:
    request_body = body(generation=Generation(max_tokens=9, temperature=0, top_p=0.5, stop=("x",)))

    assert (request_body["max_tokens"], request_body["temperature"]) == (9, 0)
    assert (request_body["top_p"], request_body["stop_sequences"]) == (0.5, ["x"])


def test_thinking_pays_its_budget_on_top_and_drops_sampling() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}

    request_body = body(
        options=UNCACHED | {"thinking": thinking}, generation=Generation(temperature=0.5)
    )

    assert (request_body["thinking"], request_body["max_tokens"]) == (thinking, 6096)
    assert "temperature" not in request_body


def test_adaptive_thinking_and_effort_pass_through_the_options() -> None:
    options = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}, "top_k": 3}

    request_body = body(options=UNCACHED | options)

    assert {name: request_body[name] for name in options} == options
    assert "cache" not in request_body


def test_a_model_that_refuses_sampling_gets_none() -> None:
    request_body = body(
        options=UNCACHED | {"sampling": False}, generation=Generation(temperature=1)
    )

    assert "temperature" not in request_body
    assert "sampling" not in request_body


def test_a_forced_tool_with_a_thinking_budget_is_refused_before_sending() -> None:
    with pytest.raises(UnsendableRequest):
        body(tools=(LOOK,), tool_choice="required", options={"thinking": {"type": "enabled"}})
