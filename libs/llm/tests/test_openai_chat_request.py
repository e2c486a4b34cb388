"""The canonical request becomes a Chat Completions body."""

import base64
from typing import Any

import pytest

from fairlead_llm import openai_chat
from fairlead_schema.provider.request import (
    AssistantTurn,
    ForcedTool,
    Generation,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)
from fairlead_schema.tools.content import FileContent, TextContent

PNG = MediaPart("data:image/png;base64,aGk=", "image/png")
IMAGE = {"type": "image_url", "image_url": {"url": PNG.uri}}


def user(*content: TextPart | MediaPart | str) -> UserTurn:
    return UserTurn(tuple(TextPart(part) if isinstance(part, str) else part for part in content))


def call_turn(*ids: str) -> AssistantTurn:
    return AssistantTurn(tuple(ToolCallPart(id_, "look", {"n": 1}) for id_ in ids))


def test_blocks_of_text_in_one_answer_stay_apart() -> None:
    """D11: the reasoning of another model and its answer were glued together (`hmfound`)."""
    (message,) = messages_for(AssistantTurn((TextPart("hm"), TextPart(""), TextPart("found"))))

    assert message["content"] == "hm\n\nfound"


def result(call_id: str, kind: str = "text", value: object = "ok") -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", kind, value))  # type: ignore[arg-type]


def messages_for(*turns: Turn, **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - request fields
    messages: list[dict[str, Any]] = openai_chat.body(ModelRequest("m", turns=turns, **fields))[
        "messages"
    ]
    return messages


def test_every_request_streams_with_usage() -> None:
    body = openai_chat.body(ModelRequest("m", turns=(user("hi"),)))

    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_system_parts_are_joined_by_newline() -> None:
    """O-26: the initial system parts in the form of this API."""
    assert messages_for(user("hi"), system=("one", "two"))[0] == {
        "role": "system",
        "content": "one\ntwo",
    }


def test_a_system_update_is_escaped_user_text_at_its_position() -> None:
    """O-18: escaped, inside its wrapper."""
    messages = messages_for(user("a"), AssistantTurn((TextPart("b"),)), SystemTurn("x < y & z > w"))

    assert messages[2] == {
        "role": "user",
        "content": "<system-update>\nx &lt; y &amp; z &gt; w\n</system-update>",
    }


def test_a_system_update_joins_a_directly_preceding_user_message() -> None:
    """O-19: a message of its own only without a user message before it."""
    assert messages_for(user("a"), SystemTurn("b")) == [
        {"role": "user", "content": "a\n<system-update>\nb\n</system-update>"}
    ]


def test_a_system_update_becomes_a_part_of_a_user_message_with_media() -> None:
    """O-19: a message of its own only without a user message before it."""
    update = {"type": "text", "text": "<system-update>\nb\n</system-update>"}

    messages = messages_for(user("a", PNG), SystemTurn("b"))

    assert messages == [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, update]}]


def test_two_system_updates_in_a_row_share_a_message() -> None:
    """O-19: a message of its own only without a user message before it."""
    assert len(messages_for(AssistantTurn((TextPart("a"),)), SystemTurn("b"), SystemTurn("c"))) == 2


def test_tool_images_are_held_until_the_next_turn_that_is_no_tool_result() -> None:
    """O-23: tool messages are text only."""
    messages = messages_for(
        user("go"),
        call_turn("a", "b"),
        result("a", "content", (TextContent(text="one"), FileContent(uri=PNG.uri, mime=PNG.mime))),
        result("b", "content", [{"type": "file", "uri": PNG.uri, "mime": PNG.mime}]),
        AssistantTurn((TextPart("seen"),)),
    )

    assert [message["role"] for message in messages[2:]] == ["tool", "tool", "user", "assistant"]
    assert messages[2]["content"] == "one"
    assert messages[3]["content"] != ""
    assert messages[4]["content"] == [IMAGE, IMAGE]


def test_held_images_are_joined_with_a_following_system_update() -> None:
    """O-23: tool messages are text only."""
    messages = messages_for(call_turn("a"), result("a", "content", (PNG,)), SystemTurn("b"))

    assert messages[2]["content"] == [
        IMAGE,
        {"type": "text", "text": "<system-update>\nb\n</system-update>"},
    ]


def test_held_images_are_sent_at_the_end_of_the_conversation() -> None:
    """O-23: tool messages are text only."""
    messages = messages_for(call_turn("a"), result("a", "content", (PNG,)))

    assert messages[2] == {"role": "user", "content": [IMAGE]}


def test_calls_and_results_pair_by_id() -> None:
    messages = messages_for(user("go"), call_turn("a"), result("a"))

    assert messages[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}
        ],
    }
    assert messages[2] == {"role": "tool", "tool_call_id": "a", "content": "ok"}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("text", "plain", "plain"),
        ("json", {"a": [1]}, '{"a":[1]}'),
        ("error", "went wrong", "went wrong"),
        ("error", {"error": {"message": "no"}}, '{"error":{"message":"no"}}'),
        ("content", (TextPart("a"), TextPart("b")), "a\nb"),
    ],
)
def test_results_become_text(kind: str, value: object, text: str) -> None:
    assert messages_for(call_turn("a"), result("a", kind, value))[1]["content"] == text


def test_history_with_hosted_tools_goes_on_as_ordinary_calls() -> None:
    """O-25: another provider's hosted tools do not end the conversation."""
    hosted = AssistantTurn(
        (
            ToolCallPart("h", "web_search", {"q": "x"}, executed=True),
            ToolResultPart("h", "web_search", "json", {"hits": 1}),
            TextPart("Found."),
        )
    )

    messages = messages_for(user("go"), hosted)

    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert messages[2]["tool_call_id"] == "h"


def test_an_assistant_turn_with_nothing_to_say_is_left_out() -> None:
    assert messages_for(user("a"), AssistantTurn((ReasoningPart("hm"),))) == messages_for(user("a"))


def test_reasoning_text_goes_back_in_its_own_field_inside_a_tool_loop_only() -> None:
    reasoning = ReasoningPart("hm", {"field": "reasoning_content"})
    turn = AssistantTurn((reasoning, *call_turn("a").content))

    inside = messages_for(user("go"), turn, result("a"), SystemTurn("s"))
    after = messages_for(user("go"), turn, result("a"), user("next"))

    assert inside[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in after[1]


def test_reasoning_details_always_go_back_joined() -> None:
    text = {"type": "reasoning.text", "index": 0, "text": "hm"}
    signed = {"type": "reasoning.text", "index": 0, "signature": "s"}
    turn = AssistantTurn(
        (
            ReasoningPart("hm", {"reasoning_details": [text]}),
            TextPart("yes"),
            ReasoningPart("", {"reasoning_details": [signed]}),
        )
    )

    assert messages_for(turn, user("next"))[0]["reasoning_details"] == [{**text, "signature": "s"}]


def test_reasoning_without_metadata_is_not_sent() -> None:
    message = messages_for(AssistantTurn((ReasoningPart("hm"), TextPart("yes"))))[0]

    assert message == {"role": "assistant", "content": "yes"}


def test_raw_input_of_an_invalid_call_is_sent_as_a_json_string() -> None:
    turn = AssistantTurn((ToolCallPart("a", "look", '{"n": 1'),))

    assert messages_for(turn)[0]["tool_calls"][0]["function"]["arguments"] == '"{\\"n\\": 1"'


def media_part(mime: str, content: bytes, name: str | None = None) -> MediaPart:
    return MediaPart(f"data:{mime};base64,{base64.b64encode(content).decode()}", mime, name)


def test_each_kind_of_media_has_its_own_part() -> None:
    content = messages_for(
        user(
            PNG,
            media_part("application/pdf", b"%PDF", "a.pdf"),
            media_part("audio/x-wav", b"RIFF"),
            media_part("text/plain", "é".encode()),
        )
    )[0]["content"]

    assert [part["type"] for part in content] == ["image_url", "file", "input_audio", "text"]
    assert content[1]["file"]["filename"] == "a.pdf"
    assert content[2]["input_audio"]["format"] == "wav"
    assert content[3]["text"] == "é"


def test_audio_has_a_format_that_the_wire_knows() -> None:
    """P-23: mp3 is called so there, and other formats are told as text."""
    sounds = media_part("audio/mpeg", b"ID3"), media_part("audio/ogg", b"OggS")
    content = messages_for(user(*sounds))[0]["content"]

    assert content[0]["input_audio"]["format"] == "mp3"
    assert "takes no such file" in content[1]["text"]


TOOL = ToolDefinition("look", "Looks.", {"type": "object", "properties": {"n": {}}})


def body(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    return openai_chat.body(ModelRequest(**({"model": "m"} | fields)))


def test_tools_are_functions_and_auto_choice_is_left_out() -> None:
    request_body = body(tools=(TOOL,))

    assert request_body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Looks.",
                "parameters": TOOL.input_schema,
            },
        }
    ]
    assert "tool_choice" not in request_body


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", "none"),
        ("required", "required"),
        (ForcedTool("look"), {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_a_tool_choice_is_sent(choice: object, expected: object) -> None:
    assert body(tools=(TOOL,), tool_choice=choice)["tool_choice"] == expected


def test_a_choice_without_tools_is_left_out() -> None:
    assert "tool_choice" not in body(tool_choice="none")


def test_a_union_at_the_root_of_a_schema_becomes_one_object() -> None:
    union = {
        "anyOf": [
            {"type": "object", "properties": {"a": {}, "k": {}}, "required": ["a", "k"]},
            {"type": "object", "properties": {"b": {}, "k": {}}, "required": ["k"]},
        ]
    }

    request_body = body(tools=(ToolDefinition("u", "", union),))

    assert request_body["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": {}, "k": {}, "b": {}},
        "required": ["k"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "max_tokens"),
        ("llama-o3", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("openai/gpt-5.5", "max_completion_tokens"),
    ],
)
def test_the_token_limit_has_the_name_the_model_knows(model: str, name: str) -> None:
    assert body(model=model, generation=Generation(max_tokens=7))[name] == 7


def test_generation_controls_and_cache_key_are_sent_when_given() -> None:
    controls = Generation(temperature=0.0, top_p=0.5, stop=("x",))

    request_body = body(generation=controls, cache_key="ses_1")

    assert (request_body["temperature"], request_body["top_p"], request_body["stop"]) == (
        0.0,
        0.5,
        ["x"],
    )
    assert request_body["prompt_cache_key"] == "ses_1"


def test_options_overlay_the_body_but_cannot_stop_streaming() -> None:
    request_body = body(options={"seed": 1, "model": "other", "stream": False})

    assert (request_body["seed"], request_body["model"], request_body["stream"]) == (
        1,
        "other",
        True,
    )


def test_the_key_is_a_bearer_token() -> None:
    assert openai_chat.headers("k") == {"authorization": "Bearer k"}
    assert openai_chat.headers(None) == {}
