"""What protocols remember of turns: the same bodies as without memory, little work, and no leak."""

import gc
import sys
from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_llm import history_memo
from fairlead_llm.history_memo import Beginning, HistoryMemo
from fairlead_llm.openai_chat import messages
from fairlead_llm.protocol import PROTOCOLS
from fairlead_llm.turn_memo import TurnMemo
from fairlead_schema.provider.request import (
    AssistantTurn,
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

PNG = MediaPart("data:image/png;base64,iVBORw0KGgo=", "image/png")
TEXT = {"type": "text", "text": "out"}
FILE = {"type": "file", "uri": PNG.uri, "mime": PNG.mime}
NATIVE = {"item": {"type": "shell_call", "id": "s", "call_id": "later"}}
HOSTED = {"anthropic": {"type": "server_tool_use", "id": "h"}}
HOSTED_RESULT = {"anthropic": {"type": "web_search_tool_result"}}

texts = st.sampled_from(["", " ", "one", "zwölf <b>"])
results = st.one_of(
    st.builds(ToolResultPart, st.just("c"), st.just("read"), st.just("text"), texts),
    st.builds(ToolResultPart, st.just("c"), st.just("read"), st.just("json"), st.just({"n": [1]})),
    st.builds(
        ToolResultPart,
        st.just("c"),
        st.just("read"),
        st.just("content"),
        st.sampled_from([[TEXT], [TEXT, FILE], [FILE]]),
    ),
)
calls = st.sampled_from(
    [
        ToolCallPart("c", "read", {"p": 1}),
        ToolCallPart("c", "shell", {"p": 1}, metadata=NATIVE),
        ToolCallPart("h", "web_search", {}, executed=True, metadata=HOSTED),
    ]
)
hosted_results = st.just(
    ToolResultPart("h", "web_search", "json", [{"url": "u"}], metadata=HOSTED_RESULT)
)
thoughts = st.sampled_from(
    [
        ReasoningPart("hm", {"anthropic": {"signature": "s"}}),
        ReasoningPart("hm", {"item_id": "rs_1", "encrypted_content": "e"}),
        ReasoningPart("hm"),
    ]
)
turns = st.one_of(
    st.builds(lambda text: UserTurn((TextPart(text),)), texts),
    st.builds(lambda text: UserTurn((TextPart(text), PNG)), texts),
    st.builds(
        lambda parts: AssistantTurn(tuple(parts)),
        st.lists(
            st.one_of(st.builds(TextPart, texts), thoughts, calls, hosted_results), max_size=4
        ),
    ),
    st.builds(ToolTurn, results),
    st.builds(SystemTurn, st.sampled_from(["", "It is Monday."])),
)
MODELS = {"gemini": ("gemini-2.5-pro", "gemini-3-pro")}


def encode(protocol: str, request: ModelRequest) -> bytes | str:
    try:
        return orjson.dumps(PROTOCOLS[protocol].body(request))
    except Exception as error:  # noqa: BLE001 - both ways must fail alike
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=60, deadline=None)
@given(history=st.lists(turns, max_size=12), stored=st.booleans(), native=st.booleans())
def test_a_growing_history_has_the_bodies_of_one_that_nobody_has_seen(
    protocol: str, *, history: list[Turn], stored: bool, native: bool
) -> None:
    options = {"native_system": native} | ({"store": True} if stored else {})
    for model in MODELS.get(protocol, ("m",)):
        grown = [ModelRequest(model, options=options)]
        for turn in history:
            grown.append(replace(grown[-1], turns=(*grown[-1].turns, turn)))

        # Twice, because what a later request did to a remembered turn would show in an earlier one.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history_memo, "TURNS_MIN", 1)
            for request in (*grown, *grown):
                assert encode(protocol, request) == encode(protocol, deepcopy(request))


def _conversation(rounds: int) -> ModelRequest:
    history: list[Turn] = []
    for number in range(rounds):
        call = ToolCallPart(f"c{number}", "read", {"p": number})
        result = ToolResultPart(f"c{number}", "read", "content", [TEXT])
        history += [
            UserTurn((TextPart(f"question {number}"),)),
            AssistantTurn((TextPart("I look."), call)),
            ToolTurn(result),
            AssistantTurn((TextPart("So it is."),)),
        ]
    return ModelRequest("m", turns=tuple(history))


def _count_calls(function: Any, *arguments: object) -> int:  # noqa: ANN401 - any function
    """How many calls, of Python and of C, a function makes: a measure of work that no load changes."""
    calls_made = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls_made
        calls_made += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls_made


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_turn_that_was_sent_before_costs_few_calls(protocol: str) -> None:
    request, body = _conversation(300), PROTOCOLS[protocol].body
    first = _count_calls(body, request)

    again = _count_calls(body, request)

    assert again < first / 2
    assert again < 8 * len(request.turns)


def test_a_long_history_of_chat_costs_what_its_last_turns_cost() -> None:
    """The closed part of a history is found as a whole."""
    body = PROTOCOLS["openai-chat"].body
    for request in (_conversation(30), long := _conversation(300)):
        body(request)
    opened = replace(long, turns=(*long.turns, UserTurn((TextPart("next"),))))
    body(opened)

    assert _count_calls(body, opened) < len(long.turns) / 4


def test_a_beginning_goes_with_the_first_of_its_turns_that_goes() -> None:
    """Another turn may get the identity of one that is gone."""
    memo = HistoryMemo[int]()
    turns = list(_conversation(10).turns)
    memo.keep(Beginning(), turns, 20, range(20))
    assert memo.find(turns, 40).items == tuple(range(20))
    assert memo.find([*turns[:5], UserTurn((TextPart("other"),)), *turns[6:]], 40) == Beginning()
    assert memo.find(turns, 19) == Beginning()

    del turns[7]
    gc.collect()

    assert len(memo) == 0


def test_a_beginning_with_media_is_not_kept() -> None:
    memo = HistoryMemo[int]()
    turns = [*_conversation(10).turns, UserTurn((TextPart("see"), PNG))]
    memo.keep(Beginning(), turns, 41, range(41))
    assert len(memo) == 0

    memo.keep(Beginning(), turns, 40, range(40))
    memo.keep(memo.find(turns, 41), turns, 41, range(41))
    assert memo.find(turns, 41).items == tuple(range(40))


def test_what_is_remembered_goes_with_its_turns() -> None:
    gc.collect()
    before = len(messages._user_message)  # noqa: SLF001 - what it remembers
    request = _conversation(50)
    messages.build_messages(request)
    assert len(messages._user_message) == before + 50  # noqa: SLF001

    del request
    gc.collect()

    assert len(messages._user_message) == before  # noqa: SLF001


def test_media_is_not_kept_twice() -> None:
    before = len(messages._user_message)  # noqa: SLF001
    request = ModelRequest("m", turns=(UserTurn((TextPart("see"), PNG)),))

    assert messages.build_messages(request) == messages.build_messages(request)
    assert len(messages._user_message) == before  # noqa: SLF001


def test_a_turn_is_translated_once_and_forgotten_with_its_history() -> None:
    translated: list[AssistantTurn] = []

    @TurnMemo
    def translate(turn: AssistantTurn) -> int:
        translated.append(turn)
        return len(translated)

    turn, equal = AssistantTurn((TextPart("a"),)), AssistantTurn((TextPart("a"),))
    assert [translate(turn), translate(turn), translate(equal)] == [1, 1, 2]
    translated.clear()
    del turn, equal
    gc.collect()
    assert len(translate) == 0


def test_a_turn_has_other_messages_after_its_loop_than_in_it() -> None:
    """O-24: plain reasoning goes back only while the model still calls tools."""
    thought = AssistantTurn((ReasoningPart("hm", {"field": "reasoning_content"}), TextPart("hi")))
    opening = UserTurn((TextPart("go"),))
    request = ModelRequest("m", turns=(opening, thought))

    inside, again = messages.build_messages(request), messages.build_messages(request)
    later = messages.build_messages(ModelRequest("m", turns=(opening, thought, opening)))

    assert inside == again
    assert inside[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in later[1]


def test_media_follows_a_result_in_every_request() -> None:
    """O-23"""
    result = ToolTurn(ToolResultPart("c1", "read", "content", [PNG]))
    request = ModelRequest("m", turns=(UserTurn((TextPart("go"),)), result))

    assert messages.build_messages(request) == messages.build_messages(request)
    assert messages.build_messages(request)[-1]["content"][0]["type"] == "image_url"
