"""The canonical request becomes a Messages body."""

import base64
from typing import Any

import pytest

from fairlead_llm import anthropic_messages
from fairlead_llm.errors import Unsendable
from fairlead_schema.request import (
    AssistantTurn,
    ForcedTool,
    Generation,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolChoice,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

PNG = MediaPart("data:image/png;base64,aGk=", "image/png")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
LOOK = ToolDefinition("look", "Looks.", {"type": "object", "properties": {}})
UNCACHED = {"cache": False}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def user(*content: TextPart | MediaPart | str) -> UserTurn:
    return UserTurn(tuple(TextPart(one) if isinstance(one, str) else one for one in content))


def called(*ids: str) -> AssistantTurn:
    return AssistantTurn(tuple(ToolCallPart(one, "look", {"n": 1}) for one in ids))


def result(call_id: str, kind: str = "text", value: object = "ok") -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", kind, value))  # type: ignore[arg-type]


def body(*turns: Turn, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    fields.setdefault("options", UNCACHED)
    return anthropic_messages.body(ModelRequest("m", turns=turns or (user("hi"),), **fields))


def sent(*turns: Turn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = body(*turns)["messages"]
    return messages


def test_the_least_request_streams_and_bounds_its_answer() -> None:
    assert body(user("hi")) == {
        "model": "m",
        "max_tokens": 4096,
        "stream": True,
        "messages": [{"role": "user", "content": [text("hi")]}],
    }


def test_path_and_headers_name_the_version_and_the_key() -> None:
    assert anthropic_messages.path(ModelRequest("m")) == "/v1/messages"
    assert anthropic_messages.headers("k") == {
        "anthropic-version": "2023-06-01",
        "x-api-key": "k",
    }
    assert "x-api-key" not in anthropic_messages.headers(None)


def test_what_grows_comes_last_in_the_body() -> None:
    assert list(body(user("hi"), system=("s",), tools=(LOOK,)))[-1] == "messages"


def test_system_parts_are_blocks_of_their_own_o_26() -> None:
    assert body(system=("one", " ", "two"))["system"] == [text("one"), text("two")]


def test_images_and_documents_of_a_user_are_native_media_o_02() -> None:
    pdf = MediaPart("data:application/pdf;base64,aGk=", "application/pdf", "a.pdf")
    note = MediaPart(f"data:text/csv;base64,{base64.b64encode(b'a,b').decode()}", "text/csv")

    content = sent(user("see", PNG, pdf, note))[0]["content"]

    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    written = {"type": "text", "media_type": "text/plain", "data": "a,b"}
    assert content == [
        text("see"),
        IMAGE,
        {"type": "document", "source": source, "title": "a.pdf"},
        {"type": "document", "source": written},
    ]


@pytest.mark.parametrize(
    "media",
    [
        MediaPart("file:///a.png", "image/png"),
        MediaPart("data:image/tiff;base64,aGk=", "image/tiff"),
        MediaPart("data:audio/wav;base64,aGk=", "audio/wav"),
    ],
)
def test_media_that_the_wire_cannot_take_is_refused_before_sending_o_16(media: MediaPart) -> None:
    with pytest.raises(Unsendable):
        body(user(media))


def test_results_of_parallel_calls_share_one_user_message() -> None:
    failed = {"error": "no", "content": [], "structured": {}}

    messages = sent(
        user("go"),
        called("a", "b", "c"),
        result("a"),
        result("b", "json", {"n": 1}),
        result("c", "error", failed),
        user("and?"),
    )

    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "b", "content": '{"n":1}'},
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": '{"error":"no","content":[],"structured":{}}',
            "is_error": True,
        },
    ]


def test_media_of_a_tool_stays_in_its_result_o_14() -> None:
    content = [
        {"type": "text", "text": "seen"},
        {"type": "file", "uri": PNG.uri, "mime": PNG.mime},
    ]

    messages = sent(user("go"), called("a"), result("a", "content", content))

    assert messages[2]["content"][0]["content"] == [text("seen"), IMAGE]


def test_an_error_without_words_gets_some() -> None:
    assert sent(called("a"), result("a", "error", ""))[1]["content"][0]["content"]


def test_local_calls_come_last_so_that_their_results_follow_them() -> None:
    turn = AssistantTurn((ToolCallPart("a", "look", {}), TextPart("I look.")))

    assert [block["type"] for block in sent(turn, result("a"))[0]["content"]] == [
        "text",
        "tool_use",
    ]


def test_empty_texts_and_turns_are_left_out_o_05() -> None:
    empty = AssistantTurn((TextPart(" \n"), ReasoningPart("")))

    assert sent(user("hi", ""), empty, user("")) == [{"role": "user", "content": [text("hi")]}]


def test_reasoning_without_a_signature_is_left_out_o_09() -> None:
    turn = AssistantTurn((ReasoningPart("hm"), TextPart("yes")))

    assert sent(user("hi"), turn)[1]["content"] == [text("yes")]


def test_ids_of_other_providers_become_ids_the_wire_takes() -> None:
    messages = sent(called("call:1|fc.2"), result("call:1|fc.2"))

    assert messages[0]["content"][0]["id"] == "call_1_fc_2"
    assert messages[1]["content"][0]["tool_use_id"] == "call_1_fc_2"


def test_arguments_that_were_no_object_are_sent_as_one() -> None:
    turn = AssistantTurn((ToolCallPart("a", "look", "not json"),))

    assert sent(turn, result("a"))[0]["content"][0]["input"] == {"value": "not json"}


def test_hosted_results_of_another_provider_go_back_as_ordinary_ones_o_25() -> None:
    turn = AssistantTurn(
        (
            ToolCallPart("a", "search", {"q": 1}, executed=True),
            ToolResultPart("a", "search", "json", {"found": 1}),
            ToolCallPart("lost", "search", {}, executed=True),
            TextPart("Found."),
            ToolCallPart("b", "look", {}),
        )
    )

    messages = sent(turn, result("b"))

    kinds = [(block["type"], block.get("id")) for block in messages[0]["content"]]
    assert kinds == [("text", None), ("tool_use", "a"), ("tool_use", "b")]
    assert [block["tool_use_id"] for block in messages[1]["content"]] == ["a", "b"]


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


def test_the_choice_of_no_tool_removes_them_o_28() -> None:
    asked = body(tools=(LOOK,), tool_choice="none")

    assert "tools" not in asked
    assert "tool_choice" not in asked


def test_hosted_tools_of_the_options_follow_the_requests_own() -> None:
    search = {"type": "web_search_20260318", "name": "web_search"}

    tools = body(tools=(LOOK,), options=UNCACHED | {"tools": [search]})["tools"]

    assert tools[0]["name"] == "look"
    assert tools[1] == search


def test_generation_controls_are_named_as_the_wire_names_them() -> None:
    asked = body(generation=Generation(max_tokens=9, temperature=0, top_p=0.5, stop=("x",)))

    assert (asked["max_tokens"], asked["temperature"]) == (9, 0)
    assert (asked["top_p"], asked["stop_sequences"]) == (0.5, ["x"])


def test_thinking_pays_its_budget_on_top_and_drops_sampling() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}

    asked = body(options=UNCACHED | {"thinking": thinking}, generation=Generation(temperature=0.5))

    assert (asked["thinking"], asked["max_tokens"]) == (thinking, 6096)
    assert "temperature" not in asked


def test_adaptive_thinking_and_effort_pass_through_the_options() -> None:
    options = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}, "top_k": 3}

    asked = body(options=UNCACHED | options)

    assert {name: asked[name] for name in options} == options
    assert "cache" not in asked


def test_a_model_that_refuses_sampling_gets_none() -> None:
    asked = body(options=UNCACHED | {"sampling": False}, generation=Generation(temperature=1))

    assert "temperature" not in asked
    assert "sampling" not in asked


def test_a_forced_tool_with_a_thinking_budget_is_refused_before_sending() -> None:
    with pytest.raises(Unsendable):
        body(tools=(LOOK,), tool_choice="required", options={"thinking": {"type": "enabled"}})
