"""Chunks of one read are joined, and nothing else changes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm.chunks import JOINED_LENGTH_MAX, join_chunks
from fairlead_schema.provider.events import (
    ProviderEvent,
    ReasoningChunk,
    TextChunk,
    TextEnd,
    TextStart,
    ToolInputChunk,
)

events = st.lists(
    st.one_of(
        st.builds(TextChunk, st.sampled_from("ab"), st.text(max_size=3)),
        st.builds(ReasoningChunk, st.sampled_from("ab"), st.text(max_size=3)),
        st.builds(ToolInputChunk, st.sampled_from("ab"), st.text(max_size=3)),
        st.builds(TextStart, st.sampled_from("ab")),
        st.builds(TextEnd, st.sampled_from("ab")),
    )
)


def flatten(read: tuple[ProviderEvent, ...]) -> list[object]:
    """Each character of a chunk by itself, in order."""
    flat: list[object] = []
    for event in read:
        if isinstance(event, TextChunk | ReasoningChunk | ToolInputChunk):
            flat += [(type(event), event.id, character) for character in event.text]
        else:
            flat.append(event)
    return flat


@given(events)
def test_joined_chunks_say_the_same_in_the_same_order(read: list[ProviderEvent]) -> None:
    joined = join_chunks(read)

    assert flatten(joined) == flatten(tuple(read))
    assert not any(
        isinstance(one, TextChunk) and isinstance(two, TextChunk) and one.id == two.id
        for one, two in pairwise(joined)
    )


def test_twenty_chunks_of_one_read_are_one() -> None:
    read: list[ProviderEvent] = [
        TextStart("t"),
        *(TextChunk("t", str(number % 10)) for number in range(20)),
    ]

    assert join_chunks(read) == (TextStart("t"), TextChunk("t", "01234567890123456789"))


def test_a_joined_chunk_has_a_bounded_length() -> None:
    large = TextChunk("t", "x" * JOINED_LENGTH_MAX)

    assert join_chunks([TextChunk("t", "a"), large, TextChunk("t", "b")]) == (
        TextChunk("t", "a"),
        large,
        TextChunk("t", "b"),
    )
