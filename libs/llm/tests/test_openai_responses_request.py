"""The canonical request becomes a Responses body."""

import base64
from itertools import pairwise
from typing import Any

import orjson
import pytest

from fairlead_llm import openai_responses
from fairlead_llm.errors import UnsendableRequest
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

PNG = MediaPart("data:image/png;base64,aGk=", "image/png")
IMAGE = {"type": "input_image", "image_url": PNG.uri}
REASONING = ReasoningPart("hm", {"item_id": "rs_1", "encrypted_content": "x"})
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
HOSTED_SEARCH = (
    ToolCallPart("ws_1", "web_search", {}, executed=True, metadata={"item_id": "ws_1"}),
    ToolResultPart("ws_1", "web_search", "json", SEARCH, {"item_id": "ws_1"}),
)


def user(*content: TextPart | MediaPart | str) -> UserTurn:
    return UserTurn(tuple(TextPart(part) if isinstance(part, str) else part for part in content))


def result(kind: str = "text", value: object = "ok", call_id: str = "a") -> ToolTurn:
    return ToolTurn(ToolResultPart(call_id, "look", kind, value))  # type: ignore[arg-type]


def body(*turns: Turn, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - request fields
    return openai_responses.body(ModelRequest(**({"model": "m", "turns": turns} | fields)))


def items_for(*turns: Turn, **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - request fields
    items: list[dict[str, Any]] = body(*turns, **fields)["input"]
    return items


def assistant_message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_every_request_streams_and_stores_nothing() -> None:
    assert body(user("hi")) == {
        "model": "m",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "store": False,
        "stream": True,
    }


@pytest.mark.parametrize("model", ["gpt-5.5", "o3", "openai/gpt-5-mini"])
def test_reasoning_models_are_asked_for_encrypted_reasoning(model: str) -> None:
    assert body(model=model)["include"] == ["reasoning.encrypted_content"]
    assert body(options={"reasoning": {"effort": "max"}})["include"]
    assert "include" not in body(model="gpt-4.1")
    assert "include" not in body(model=model, options={"store": True})


def test_system_parts_are_joined_by_newline() -> None:
    """O-26: the initial system parts in the form of this API."""
    assert items_for(user("hi"), system=("one", "two"))[0] == {
        "role": "system",
        "content": "one\ntwo",
    }


def test_a_system_update_has_its_own_role_at_its_position() -> None:
    items = items_for(user("a"), AssistantTurn((TextPart("b"),)), SystemTurn("x < y"), user("c"))

    assert [item["role"] for item in items] == ["user", "assistant", "system", "user"]
    assert items[2]["content"] == "x < y"


def test_a_system_update_is_wrapped_where_the_role_is_not_known() -> None:
    """O-18, O-19: escaped, inside its wrapper."""
    wrapped = {"native_system": False}
    update = {"type": "input_text", "text": "<system-update>\nx &lt; y\n</system-update>"}

    joined = items_for(user("a"), SystemTurn("x < y"), options=wrapped)
    alone = items_for(AssistantTurn((TextPart("a"),)), SystemTurn("x < y"), options=wrapped)

    assert joined == [{"role": "user", "content": [{"type": "input_text", "text": "a"}, update]}]
    assert alone[1] == {"role": "user", "content": [update]}


def test_a_later_request_begins_with_the_whole_of_an_earlier_one() -> None:
    turns = (user("a"), AssistantTurn((REASONING, TextPart("b"))), SystemTurn("c"), user("d"))
    tools = (ToolDefinition("look", "Look.", {}),)

    bodies = [
        orjson.dumps(body(*turns[:n], tools=tools, cache_key="ses_1", system=("s",)))
        for n in range(1, len(turns) + 1)
    ]

    assert all(b.startswith(a.removesuffix(b"]}")) for a, b in pairwise(bodies))


def test_hosted_tools_of_the_options_join_the_requests_own() -> None:
    search = {"type": "web_search"}

    request_body = body(tools=(ToolDefinition("look", "Look.", {}),), options={"tools": [search]})

    assert [tool["type"] for tool in request_body["tools"]] == ["function", "web_search"]


def test_a_tool_loop_is_calls_and_outputs() -> None:
    calls = (ToolCallPart("a", "look", {"n": 1}), ToolCallPart("b", "look", {}))

    items = items_for(AssistantTurn((TextPart("so"), *calls)), result(), result(call_id="b"))

    assert items == [
        assistant_message("so"),
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"n":1}'},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
        {"type": "function_call_output", "call_id": "b", "output": "ok"},
    ]


@pytest.mark.parametrize(
    ("kind", "value", "output"),
    [
        ("text", "ok", "ok"),
        ("json", {"a": 1}, '{"a":1}'),
        ("error", {"error": "no"}, '{"error":"no"}'),
        ("content", (TextPart("a"), TextPart("b")), "a\nb"),
        ("content", (TextPart("a"), PNG), [{"type": "input_text", "text": "a"}, IMAGE]),
        ("content", [{"type": "file", "uri": PNG.uri, "mime": PNG.mime}], [IMAGE]),
    ],
)
def test_a_result_is_text_unless_it_has_media(kind: str, value: object, output: object) -> None:
    assert items_for(result(kind, value))[0]["output"] == output


def test_reasoning_goes_back_with_its_encrypted_content() -> None:
    """O-24: encrypted content without stored state, a reference with it."""
    summaries = (ReasoningPart("one", {"item_id": "rs_1"}), REASONING)

    items = items_for(AssistantTurn((*summaries, TextPart("yes"))))

    assert items == [
        {
            "type": "reasoning",
            "summary": [
                {"type": "summary_text", "text": "one"},
                {"type": "summary_text", "text": "hm"},
            ],
            "encrypted_content": "x",
        },
        assistant_message("yes"),
    ]


def test_a_raw_chain_of_thought_goes_back_as_content() -> None:
    raw = ReasoningPart("hm", {"item_id": "rs_1", "encrypted_content": "x", "raw": True})

    item = items_for(AssistantTurn((raw, TextPart("yes"))))[0]

    assert (item["summary"], item["content"]) == ([], [{"type": "reasoning_text", "text": "hm"}])


def test_reasoning_of_two_items_stays_apart() -> None:
    other = ReasoningPart("", {"item_id": "rs_2", "encrypted_content": "y"})

    items = items_for(AssistantTurn((REASONING, other, TextPart("yes"))))

    assert [item.get("encrypted_content") for item in items] == ["x", "y", None]


@pytest.mark.parametrize("metadata", [None, {"item_id": "rs_1"}])
def test_reasoning_without_encrypted_content_is_left_out(
    metadata: dict[str, Any] | None,
) -> None:
    """O-24: encrypted content without stored state, a reference with it."""
    assert items_for(AssistantTurn((ReasoningPart("hm", metadata), TextPart("yes")))) == [
        assistant_message("yes")
    ]


def test_reasoning_whose_next_item_never_came_is_left_out() -> None:
    assert items_for(AssistantTurn((REASONING,)), user("go on"))[0]["role"] == "user"
    assert items_for(AssistantTurn((TextPart("a"), REASONING))) == [assistant_message("a")]


def test_with_stored_state_reasoning_and_hosted_items_are_references() -> None:
    """O-24: encrypted content without stored state, a reference with it."""
    turn = AssistantTurn((REASONING, *HOSTED_SEARCH, TextPart("yes")))

    assert items_for(turn, options={"store": True}) == [
        {"type": "item_reference", "id": "rs_1"},
        {"type": "item_reference", "id": "ws_1"},
        assistant_message("yes"),
    ]


def test_a_hosted_item_goes_back_as_it_came() -> None:
    assert items_for(AssistantTurn((REASONING, *HOSTED_SEARCH, TextPart("yes"))))[1] == SEARCH


def test_another_providers_hosted_tool_goes_back_as_an_ordinary_call() -> None:
    call = ToolCallPart("s_1", "web_search", {"q": "x"}, executed=True)
    foreign_result = ToolResultPart("s_1", "web_search", "json", {"found": 1})

    items = items_for(AssistantTurn((call, foreign_result, TextPart("yes"))))

    assert [item.get("type") for item in items] == ["function_call", "function_call_output", None]
    assert items[1]["output"] == '{"found":1}'


def test_a_hosted_call_without_a_result_is_left_out() -> None:
    assert items_for(AssistantTurn((HOSTED_SEARCH[0], TextPart("yes")))) == [
        assistant_message("yes")
    ]


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("custom_tool_call", "ok"),
        ("local_shell_call", "ok"),
        (
            "shell_call",
            [{"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
    ],
)
def test_a_call_that_is_no_function_goes_back_as_it_came(kind: str, output: object) -> None:
    item = {"type": kind, "id": "i", "call_id": "a", "name": "sh", "input": "ls"}
    call = ToolCallPart("a", "sh", {"value": "ls"}, metadata={"item_id": "i", "item": item})

    assert items_for(AssistantTurn((call,)), result()) == [
        item,
        {"type": f"{kind}_output", "call_id": "a", "output": output},
    ]


def test_tools_are_flat_and_not_strict() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = (ToolDefinition("look", "Look.", schema),)

    assert body(tools=tools)["tools"] == [
        {
            "type": "function",
            "name": "look",
            "description": "Look.",
            "parameters": schema,
            "strict": False,
        }
    ]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        (ForcedTool("look"), {"type": "function", "name": "look"}),
    ],
)
def test_the_tool_choice_is_told(choice: Any, wire: object) -> None:  # noqa: ANN401
    tools = (ToolDefinition("look", "Look.", {}),)

    assert body(tools=tools, tool_choice=choice).get("tool_choice") == wire


def test_generation_controls_are_told_where_the_model_takes_them() -> None:
    controls = Generation(max_tokens=9, temperature=0.0, top_p=0.5)

    plain, reasoning = (body(model=model, generation=controls) for model in ("gpt-4.1", "gpt-5"))

    assert (plain["max_output_tokens"], plain["temperature"], plain["top_p"]) == (9, 0.0, 0.5)
    assert not {"temperature", "top_p"} & reasoning.keys()


def test_stop_sequences_cannot_be_sent() -> None:
    with pytest.raises(UnsendableRequest):
        body(generation=Generation(stop=("x",)))


def test_the_cache_key_is_sent_and_options_win_but_not_over_streaming() -> None:
    request_body = body(cache_key="ses_1", options={"prompt_cache_key": "k", "stream": False})

    assert body(cache_key="ses_1")["prompt_cache_key"] == "ses_1"
    assert (request_body["prompt_cache_key"], request_body["stream"]) == ("k", True)


def test_media_of_every_taken_kind() -> None:
    pdf = MediaPart("data:application/pdf;base64,aGk=", "application/pdf", "a.pdf")
    note = MediaPart(f"data:text/plain;base64,{base64.b64encode(b'note').decode()}", "text/plain")

    content = items_for(user("see", PNG, pdf, note))[0]["content"]

    assert content == [
        {"type": "input_text", "text": "see"},
        IMAGE,
        {"type": "input_file", "filename": "a.pdf", "file_data": pdf.uri},
        {"type": "input_text", "text": "note"},
    ]


def test_the_path_and_the_key() -> None:
    assert openai_responses.path(ModelRequest("m")) == "/v1/responses"
    assert openai_responses.headers("k") == {"authorization": "Bearer k"}
    assert openai_responses.headers(None) == {}
