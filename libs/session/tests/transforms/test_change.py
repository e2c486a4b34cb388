"""P-20: which changes of a request are valid, and that an unchanged part stays the same object."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import (
    AssistantTurn,
    Generation,
    MediaPart,
    ModelRequest,
    ReasoningPart,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    Turn,
    UserTurn,
)
from fairlead_schema.subjects import Address
from fairlead_schema.transforms.answer import RequestChange
from fairlead_schema.transforms.registration import RequestPart
from fairlead_session.transforms.change import apply_change
from fairlead_session.transforms.document import RequestOrigin, build_document
from fairlead_session.transforms.messages import InvalidChange, message_json

ALL: tuple[RequestPart, ...] = ("system", "messages", "parameters", "headers")
ORIGIN = RequestOrigin(
    Address("acme", "ses_1"),
    "build",
    ModelRef(provider_id="acme", id="fast"),
    "turn",
    headers=frozenset({"authorization", "x-session-id"}),
    output_tokens_max=1000,
)
CALL = ToolCallPart("c1", "read", {"path": "a"}, metadata={"sig": 1})
RESULT = ToolResultPart("c1", "read", "text", "secret 42")
TURNS: tuple[Turn, ...] = (
    UserTurn((TextPart("hello"), MediaPart("data:,x", "text/plain", "x.txt"))),
    AssistantTurn((ReasoningPart("hm", {"signature": "s"}), TextPart("ok"), CALL)),
    ToolTurn(RESULT),
    SystemTurn("now day 2"),
    UserTurn((TextPart("go on"),)),
)
REQUEST = ModelRequest(
    "fast-1",
    system=("Be careful.",),
    turns=TURNS,
    generation=Generation(max_tokens=1000),
    headers={"X-Session-Id": "ses_1"},
    options={"top_k": 3},
)


def change(
    document: dict[str, Any],
    request: ModelRequest = REQUEST,
    parts: tuple[RequestPart, ...] = ALL,
    *,
    trusted: bool = False,
) -> ModelRequest:
    parsed = RequestChange.model_validate_json(json.dumps(document))
    return apply_change(request, parsed, ORIGIN, parts=parts, trusted=trusted)


def messages(request: ModelRequest = REQUEST) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(build_document(request, ORIGIN, ("messages",)))[
        "messages"
    ]
    return found


def test_a_transform_gets_only_the_parts_it_declared_and_no_header_values() -> None:
    document = json.loads(build_document(REQUEST, ORIGIN, ("headers", "parameters")))

    assert document == {
        "tenant": "acme",
        "sessionID": "ses_1",
        "agent": "build",
        "model": {"providerID": "acme", "id": "fast"},
        "purpose": "turn",
        "headers": ["authorization", "x-session-id"],
        "parameters": {"maxTokens": 1000, "options": {"top_k": 3}},
    }


def test_what_comes_back_as_it_was_is_the_same_request() -> None:
    document = json.loads(build_document(REQUEST, ORIGIN, ("system", "messages", "parameters")))
    answer = {part: document[part] for part in ("system", "messages", "parameters")}

    assert change(answer) is REQUEST
    assert change({}) is REQUEST


def test_one_changed_message_leaves_the_others_the_same_objects() -> None:
    """A provider's translation of a history is kept by identity, so it is made once."""
    edited = messages()
    edited[2]["content"][0]["value"] = "secret [gone]"

    after = change({"messages": edited})

    assert after.turns[2] == ToolTurn(replace(RESULT, value="secret [gone]"))
    assert [new is old for new, old in zip(after.turns, TURNS, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_a_changed_message_keeps_what_its_provider_signed() -> None:
    edited = messages()
    edited[1]["content"][1]["text"] = "okay"

    after = change({"messages": edited}).turns[1]

    assert after == AssistantTurn((ReasoningPart("hm", {"signature": "s"}), TextPart("okay"), CALL))


def test_messages_may_be_added_and_removed_beside_the_pairs() -> None:
    edited = messages()
    added = {"role": "user", "content": [{"type": "text", "text": "note"}]}

    after = change({"messages": [edited[0], added, *edited[1:3], edited[4]]})

    assert [turn.role for turn in after.turns] == ["user", "user", "assistant", "tool", "user"]


def rename_tool(found: list[dict[str, Any]]) -> None:
    found[1]["content"][2]["name"] = found[2]["content"][0]["name"] = "bash"


NOTE = {"role": "user", "content": [{"type": "text", "text": "x"}]}
BROKEN: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "the result is gone": lambda found: found.pop(2),
    "the call is gone": lambda found: found[1]["content"].pop(2),
    "both are gone": lambda found: (found.pop(2), found[1]["content"].pop(2)),
    "another call": lambda found: found[1]["content"][2].update(callID="c9"),
    "another tool": rename_tool,
    "a message between": lambda found: found.insert(2, NOTE),
    "the result twice": lambda found: found.insert(2, found[2]),
    "the result first": lambda found: found.insert(0, found.pop(2)),
    "reasoning is changed": lambda found: found[1]["content"][0].update(text="hm!"),
    "it became hosted": lambda found: found[1]["content"][2].update(executed=True),
    "the last role": lambda found: found.pop(4),
    "an empty text": lambda found: found[0]["content"][0].update(text=""),
    "a result of the user": lambda found: found[0]["content"].append(found[2]["content"][0]),
    "no content": lambda found: found[0]["content"].clear(),
}


@pytest.mark.parametrize("edit", BROKEN)
def test_the_pairs_of_calls_and_results_stay(edit: str) -> None:
    edited = messages()
    BROKEN[edit](edited)

    with pytest.raises(InvalidChange, match="messages"):
        change({"messages": edited})


def test_what_a_provider_ran_itself_stays_as_it_was() -> None:
    hosted = ToolCallPart("h1", "web_search", {"q": "x"}, executed=True)
    result = ToolResultPart("h1", "web_search", "json", {"hits": 1}, {"encrypted": "e"})
    request = replace(REQUEST, turns=(AssistantTurn((hosted, result)), TURNS[4]))
    edited = messages(request)
    edited[0]["content"][1]["value"] = {"hits": 2}

    with pytest.raises(InvalidChange):
        change({"messages": edited}, request)


def test_parameters_are_laid_over_and_a_null_removes() -> None:
    parameters = {"temperature": 0.5, "maxTokens": 10, "options": {"top_k": None, "seed": 7}}

    after = change({"parameters": parameters})

    assert after.generation == Generation(max_tokens=10, temperature=0.5)
    assert after.options == {"seed": 7}
    assert change({"parameters": {"maxTokens": None}}).generation.max_tokens is None


@pytest.mark.parametrize(
    "parameters",
    [{"maxTokens": 1001}, {"options": {"model": "dear"}}, {"options": {"messages": []}}],
)
def test_a_transform_changes_no_field_that_prices_and_limits_depend_on(
    parameters: dict[str, Any],
) -> None:
    with pytest.raises(InvalidChange, match="parameters"):
        change({"parameters": parameters})


def test_a_service_adds_headers_and_replaces_none_of_the_configuration() -> None:
    after = change({"headers": {"X-Acme-Token": "t0p"}})

    assert after.headers == {"X-Session-Id": "ses_1", "X-Acme-Token": "t0p"}
    assert after.private_headers == {"x-acme-token"}
    assert change({"headers": {"x-acme-token": None}}, after).headers == REQUEST.headers
    for name in ("Authorization", "x-session-ID"):
        with pytest.raises(InvalidChange, match="configuration sets it"):
            change({"headers": {name: "x"}})


def test_the_operators_own_plugin_may_replace_headers_but_not_those_of_the_transport() -> None:
    assert change({"headers": {"authorization": "b"}}, trusted=True).headers["authorization"] == "b"
    for name in ("Host", "content-length", "Proxy-Authorization"):
        with pytest.raises(InvalidChange, match="transport"):
            change({"headers": {name: "x"}}, trusted=True)


@pytest.mark.parametrize("part", ALL)
def test_a_part_that_was_not_declared_is_refused(part: RequestPart) -> None:
    others = tuple(other for other in ALL if other != part)
    values: dict[RequestPart, Any] = {
        "system": ["x"],
        "messages": messages(),
        "parameters": {"topP": 0.1},
        "headers": {"x-a": "b"},
    }

    with pytest.raises(InvalidChange, match="did not declare"):
        change({part: values[part]}, parts=others)


@pytest.mark.parametrize(
    "document",
    [
        {"system": "text"},
        {"messages": []},
        {"messages": [{"role": "robot", "content": []}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]},
        {"headers": {"x y": "z"}},
        {"headers": {"x": "a\r\nb: c"}},
        {"headers": {f"x-{number}": "v" for number in range(65)}},
        {"parameters": {"temperature": 9}},
        {"parameters": {"unknown": 1}},
        {"sytem": []},
    ],
)
def test_an_answer_of_another_form_is_no_change(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        RequestChange.model_validate_json(json.dumps(document))


TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Turn, ...]:
    """A user's message, then any number of texts and answered calls, then a user's message."""
    turns: list[Turn] = [UserTurn((TextPart(draw(TEXT)),))]
    for number in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            turns.append(SystemTurn(draw(TEXT)))
            continue
        call = ToolCallPart(f"c{number}", "read", draw(JSON))
        result = ToolResultPart(f"c{number}", "read", "json", draw(JSON))
        turns += [AssistantTurn((ReasoningPart(draw(TEXT)), call)), ToolTurn(result)]
    return (*turns, UserTurn((TextPart(draw(TEXT)),)))


@given(histories())
def test_any_history_survives_the_way_to_a_transform_and_back(turns: tuple[Turn, ...]) -> None:
    request = replace(REQUEST, turns=turns)

    assert change({"messages": [message_json(turn) for turn in turns]}, request) is request


@given(histories(), st.data())
def test_no_removal_leaves_a_call_without_its_result(
    turns: tuple[Turn, ...], data: st.DataObject
) -> None:
    """Whatever a transform leaves out: the request is refused, or every call still has its result."""
    request = replace(REQUEST, turns=turns)
    kept = [message for message in messages(request) if data.draw(st.booleans())]

    try:
        after = change({"messages": kept or messages(request)}, request)
    except InvalidChange:
        return
    calls = [
        part.call_id
        for turn in after.turns
        if isinstance(turn, AssistantTurn)
        for part in turn.content
        if isinstance(part, ToolCallPart)
    ]
    results = [turn.result.call_id for turn in after.turns if isinstance(turn, ToolTurn)]
    assert calls == results
    assert len(calls) == sum(isinstance(turn, ToolTurn) for turn in turns)
