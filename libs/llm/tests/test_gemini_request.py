"""The canonical request becomes a Gemini body."""

from itertools import pairwise
from typing import Any

import orjson
import pytest

from fairlead_llm import gemini
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
    ToolChoice,
    ToolDefinition,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)

PNG = MediaPart("data:image/png;base64,aGk=", "image/png")
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
LOOK = ToolDefinition("look", "Looks.", {"type": "object", "properties": {"n": {"type": "string"}}})
IMAGE_RESULT = [
    {"type": "text", "text": "seen"},
    {"type": "file", "uri": PNG.uri, "mime": PNG.mime},
]


def user(*content: TextPart | MediaPart | str) -> UserTurn:
    return UserTurn(tuple(TextPart(part) if isinstance(part, str) else part for part in content))


def call_turn(*ids: str) -> AssistantTurn:
    return AssistantTurn(tuple(ToolCallPart(id_, "look", {"n": 1}) for id_ in ids))


def result(call_id: str, kind: str = "text", value: object = "ok") -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", kind, value))  # type: ignore[arg-type]


def body(*turns: Turn, model: str = "gemini-2.5-flash", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    return gemini.body(ModelRequest(model, turns=turns or (user("hi"),), **fields))


def contents_for(*turns: Turn, model: str = "gemini-2.5-flash") -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = body(*turns, model=model)["contents"]
    return contents


def test_the_least_request_is_its_contents() -> None:
    assert body(user("hi")) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-3-pro", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("a?b", "/v1beta/models/a%3Fb:streamGenerateContent?alt=sse"),
    ],
)
def test_the_path_names_the_model_and_asks_for_events(model: str, path: str) -> None:
    assert gemini.path(ModelRequest(model)) == path
    assert gemini.headers("k") == {"x-goog-api-key": "k"}
    assert gemini.headers(None) == {}


def test_system_parts_are_the_system_instruction() -> None:
    request_body = body(system=("one", "", "two"))

    assert request_body["systemInstruction"] == {"parts": [{"text": "one"}, {"text": "two"}]}


def test_media_of_a_user_is_inline_data() -> None:
    """O-02: files follow the text, each as media."""
    sound = MediaPart("data:audio/wav;base64,aGk=", "audio/wav")

    parts = contents_for(user("see", PNG, sound))[0]["parts"]

    assert parts[:2] == [{"text": "see"}, IMAGE]
    assert parts[2]["inlineData"]["mimeType"] == "audio/wav"


def test_an_update_is_escaped_user_text_at_its_position() -> None:
    """O-18: escaped, inside its wrapper."""
    answer = AssistantTurn((TextPart("yes"),))

    contents = contents_for(user("hi"), answer, SystemTurn("a < b"))

    wrapped = {"text": "<system-update>\na &lt; b\n</system-update>"}
    assert contents[2] == {"role": "user", "parts": [wrapped]}
    assert contents_for(user("hi"), SystemTurn("a < b"))[0]["parts"] == [{"text": "hi"}, wrapped]


def test_responses_to_parallel_calls_share_a_content_in_order_and_keep_their_ids() -> None:
    contents = contents_for(
        user("go"),
        call_turn("a", "b", "c"),
        result("a"),
        result("b", "json", [1]),
        result("c", "error", {"error": "no"}),
    )

    assert contents[1]["parts"][0] == {
        "functionCall": {"id": "a", "name": "look", "args": {"n": 1}}
    }
    responses = [part["functionResponse"] for part in contents[2]["parts"]]
    assert [(response["id"], response["name"]) for response in responses] == [
        ("a", "look"),
        ("b", "look"),
        ("c", "look"),
    ]
    assert [response["response"] for response in responses] == [
        {"output": "ok"},
        {"output": [1]},
        {"error": {"error": "no"}},
    ]


def test_media_of_a_tool_is_beside_its_response_or_inside_it_by_model() -> None:
    """O-14: native media, never JSON text."""
    turns = (user("go"), call_turn("a"), result("a", "content", IMAGE_RESULT))

    older, newer = (
        contents_for(*turns)[2]["parts"],
        contents_for(*turns, model="gemini-3-pro")[2]["parts"],
    )

    assert older[0]["functionResponse"]["response"] == {"output": "seen"}
    assert older[1:] == [IMAGE]
    assert len(newer) == 1
    assert newer[0]["functionResponse"]["parts"] == [IMAGE]


def test_calls_of_another_model_are_excused_where_signatures_are_demanded() -> None:
    parts = contents_for(call_turn("a", "b"), model="gemini-3-pro")[0]["parts"]

    assert parts[0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in parts[1]
    assert "thoughtSignature" not in contents_for(call_turn("a"))[0]["parts"][0]


def test_hosted_results_of_another_provider_go_back_as_ordinary_ones() -> None:
    """O-25: another provider's hosted tools do not end the conversation."""
    turn = AssistantTurn(
        (
            ToolCallPart("a", "search", {"q": 1}, executed=True),
            ToolResultPart("a", "search", "json", {"found": 1}),
            ToolCallPart("lost", "search", {}, executed=True),
            ToolCallPart("b", "look", "not json"),
        )
    )

    model, answers = contents_for(turn, result("b"))

    calls = [(part["functionCall"]["id"], part["functionCall"]["args"]) for part in model["parts"]]
    assert calls == [("a", {"q": 1}), ("b", {"value": "not json"})]
    assert [part["functionResponse"]["id"] for part in answers["parts"]] == ["a", "b"]


def test_reasoning_stays_reasoning_and_empty_turns_are_left_out() -> None:
    """O-05, O-09: an empty turn is not sent."""
    turn = AssistantTurn((ReasoningPart("hm"), TextPart("yes")))

    assert contents_for(turn)[0]["parts"] == [{"text": "hm", "thought": True}, {"text": "yes"}]
    assert contents_for(user("hi"), AssistantTurn((TextPart(""), ReasoningPart(""))), user("")) == [
        {"role": "user", "parts": [{"text": "hi"}]}
    ]


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        (ForcedTool("look"), {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_each_tool_choice_has_its_mode(choice: ToolChoice, calling: object) -> None:
    request_body = body(tools=(LOOK,), tool_choice=choice)

    assert request_body["toolConfig"] == {"functionCallingConfig": calling}
    assert "toolConfig" not in body(tools=(LOOK,))


def test_options_join_what_the_request_says() -> None:
    options = {
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}, "topP": 0.1},
        "tools": [{"googleSearch": {}}],
        "cachedContent": "c",
    }

    request_body = body(
        options=options,
        tools=(LOOK,),
        generation=Generation(max_tokens=9, temperature=0, top_p=0.5, stop=("x",)),
    )

    assert request_body["generationConfig"] == {
        "maxOutputTokens": 9,
        "temperature": 0,
        "topP": 0.1,
        "stopSequences": ["x"],
        "thinkingConfig": {"thinkingLevel": "low"},
    }
    assert [*request_body["tools"][0], *request_body["tools"][1]] == [
        "functionDeclarations",
        "googleSearch",
    ]
    assert request_body["cachedContent"] == "c"
    assert body(options={"tools": [{"googleSearch": {}}]})["tools"] == [{"googleSearch": {}}]


def test_each_request_of_a_loop_begins_with_the_one_before_it() -> None:
    loop = (user("go"), call_turn("a"), result("a"), AssistantTurn((TextPart("ok"),)), user("on"))
    requests = [body(*loop[:end], tools=(LOOK,), system=("s",)) for end in (1, 3, 5)]

    for earlier, later in pairwise(requests):
        assert orjson.dumps(later).startswith(orjson.dumps(earlier).removesuffix(b"]}"))


def test_an_answer_that_was_begun_for_the_model_is_asked_to_go_on() -> None:
    """E-23: the API refuses a conversation that ends with the model's words."""
    contents = contents_for(user("hi"), AssistantTurn((TextPart("This is the last step."),)))

    assert [content["role"] for content in contents] == ["user", "model", "user"]
