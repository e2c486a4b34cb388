"""One id for several calls of an answer: every call gets an id of its own (FINDINGS D15)."""

import pytest

from fairlead_llm.calls.call_ids import CallIds, free_id
from fairlead_schema.provider.events import (
    ProviderEvent,
    TextChunk,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)


def streamed_call(id_: str, text: str) -> list[ProviderEvent]:
    return [
        ToolInputStart(id_, "read"),
        ToolInputChunk(id_, text),
        ToolInputEnd(id_),
        ToolCall(id_, "read", text),
    ]


def separate(*events: ProviderEvent) -> list[ProviderEvent]:
    ids = CallIds()
    return [ids.separate(event) for event in events]


def test_calls_with_ids_of_their_own_keep_them() -> None:
    events = [TextChunk("text-0", "x"), *streamed_call("a", "1"), *streamed_call("b", "2")]

    assert separate(*events) == events


def test_a_second_call_with_the_same_id_gets_a_number() -> None:
    events = separate(*streamed_call("a", "1"), *streamed_call("a", "2"), *streamed_call("a", "3"))

    assert events == [
        *streamed_call("a", "1"),
        *streamed_call("a-2", "2"),
        *streamed_call("a-3", "3"),
    ]


def test_a_call_without_streamed_input_is_told_apart_too() -> None:
    first, second = ToolCall("a", "read", {"n": 1}), ToolCall("a", "read", {"n": 2})

    assert separate(first, second) == [first, ToolCall("a-2", "read", {"n": 2})]


def test_a_result_belongs_to_the_newest_call_of_its_id() -> None:
    first = ToolCall("a", "search", {"n": 1}, executed=True)

    events = separate(first, ToolResult("a", "one"), first, ToolResult("a", "two"))

    assert [event.id for event in events if isinstance(event, ToolResult)] == ["a", "a-2"]


@pytest.mark.parametrize(("taken", "free"), [((), "a"), (("a",), "a-2"), (("a", "a-2"), "a-3")])
def test_a_numbered_id_that_another_call_has_is_not_given_again(
    taken: tuple[str, ...], free: str
) -> None:
    assert free_id("a", taken) == free
