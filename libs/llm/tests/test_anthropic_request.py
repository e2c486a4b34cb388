"""The canonical request becomes a Messages body."""

import base64
from typing import Any

from fairlead_llm import anthropic_messages
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
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


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def user(*content: TextPart | MediaPart | str) -> UserTurn:
    return UserTurn(tuple(TextPart(part) if isinstance(part, str) else part for part in content))


def call_turn(*ids: str) -> AssistantTurn:
    return AssistantTurn(tuple(ToolCallPart(id_, "look", {"n": 1}) for id_ in ids))


def result(call_id: str, kind: str = "text", value: object = "ok") -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", kind, value))  # type: ignore[arg-type]


def body(*turns: Turn, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    fields.setdefault("options", UNCACHED)
    return anthropic_messages.body(ModelRequest("m", turns=turns or (user("hi"),), **fields))


def messages_for(*turns: Turn) -> list[dict[str, Any]]:
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


def test_system_parts_are_blocks_of_their_own() -> None:
    """O-26: the initial system parts in the form of this API."""
    assert body(system=("one", " ", "two"))["system"] == [text("one"), text("two")]


def test_images_and_documents_of_a_user_are_native_media() -> None:
    """O-02: files follow the text, each as media."""
    pdf = MediaPart("data:application/pdf;base64,aGk=", "application/pdf", "a.pdf")
    note = MediaPart(f"data:text/csv;base64,{base64.b64encode(b'a,b').decode()}", "text/csv")

    content = messages_for(user("see", PNG, pdf, note))[0]["content"]

    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    csv = {"type": "text", "media_type": "text/plain", "data": "a,b"}
    assert content == [
        text("see"),
        IMAGE,
        {"type": "document", "source": source, "title": "a.pdf"},
        {"type": "document", "source": csv},
    ]


def test_results_of_parallel_calls_share_one_user_message() -> None:
    failed = {"error": "no", "content": [], "structured": {}}

    messages = messages_for(
        user("go"),
        call_turn("a", "b", "c"),
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


def test_media_of_a_tool_stays_in_its_result() -> None:
    """O-14: native media, never JSON text."""
    content = [
        {"type": "text", "text": "seen"},
        {"type": "file", "uri": PNG.uri, "mime": PNG.mime},
    ]

    messages = messages_for(user("go"), call_turn("a"), result("a", "content", content))

    assert messages[2]["content"][0]["content"] == [text("seen"), IMAGE]


def test_an_error_without_words_gets_some() -> None:
    assert messages_for(call_turn("a"), result("a", "error", ""))[1]["content"][0]["content"]


def test_local_calls_come_last_so_that_their_results_follow_them() -> None:
    turn = AssistantTurn((ToolCallPart("a", "look", {}), TextPart("I look.")))

    assert [block["type"] for block in messages_for(turn, result("a"))[0]["content"]] == [
        "text",
        "tool_use",
    ]


def test_empty_texts_and_turns_are_left_out() -> None:
    """O-05: an empty turn is not sent."""
    empty = AssistantTurn((TextPart(" \n"), ReasoningPart("")))

    assert messages_for(user("hi", ""), empty, user("")) == [
        {"role": "user", "content": [text("hi")]}
    ]


def test_reasoning_without_a_signature_is_left_out() -> None:
    """O-09: reasoning without metadata is not sent as thinking."""
    turn = AssistantTurn((ReasoningPart("hm"), TextPart("yes")))

    assert messages_for(user("hi"), turn)[1]["content"] == [text("yes")]


def test_ids_of_other_providers_become_ids_the_wire_takes() -> None:
    messages = messages_for(call_turn("call:1|fc.2"), result("call:1|fc.2"))

    assert messages[0]["content"][0]["id"] == "call_1_fc_2"
    assert messages[1]["content"][0]["tool_use_id"] == "call_1_fc_2"


def test_arguments_that_were_no_object_are_sent_as_one() -> None:
    turn = AssistantTurn((ToolCallPart("a", "look", "not json"),))

    assert messages_for(turn, result("a"))[0]["content"][0]["input"] == {"value": "not json"}


def test_hosted_results_of_another_provider_go_back_as_ordinary_ones() -> None:
    """O-25: another provider's hosted tools do not end the conversation."""
    turn = AssistantTurn(
        (
            ToolCallPart("a", "search", {"q": 1}, executed=True),
            ToolResultPart("a", "search", "json", {"found": 1}),
            ToolCallPart("lost", "search", {}, executed=True),
            TextPart("Found."),
            ToolCallPart("b", "look", {}),
        )
    )

    messages = messages_for(turn, result("b"))

    kinds = [(block["type"], block.get("id")) for block in messages[0]["content"]]
    assert kinds == [("text", None), ("tool_use", "a"), ("tool_use", "b")]
    assert [block["tool_use_id"] for block in messages[1]["content"]] == ["a", "b"]


def test_an_answer_that_was_begun_for_the_model_is_asked_to_go_on() -> None:
    """E-23: newer models refuse to be prefilled. The breakpoints stay in their places."""
    last_words = AssistantTurn((TextPart("This is the last step."),))

    messages = body(user("hi"), last_words, options={})["messages"]

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert "cache_control" in messages[0]["content"][-1]
    assert "cache_control" not in messages[2]["content"][-1]
