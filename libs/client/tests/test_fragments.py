"""Fragments of a text over several connections: nobody reads a character twice."""

from fairlead_client.fragment_filter import FragmentFilter
from fairlead_client.received_event import ReceivedEvent


def fragment(text: str, index: int | None, block: str = "t") -> ReceivedEvent:
    data = {"assistantMessageID": "msg_x", "textID": block, "delta": text, "index": index}
    return ReceivedEvent("text.delta", data, "evt_live")


def passed(filter_: FragmentFilter, *events: ReceivedEvent) -> str:
    taken = (filter_.take(event) for event in events)
    return "".join(event.data["delta"] for event in taken if event is not None)


def test_the_text_so_far_of_a_new_connection_is_cut_to_what_is_new() -> None:
    """A client that comes again reads on where it stopped."""
    filter_ = FragmentFilter()
    first = passed(filter_, fragment("Hel", 0), fragment("lo", 1))
    filter_.reconnect()

    second = passed(filter_, fragment("Hello wo", 0), fragment("rld", 3))

    assert (first, second) == ("Hello", " world")


def test_a_long_text_so_far_comes_in_pieces_with_one_number() -> None:
    filter_ = FragmentFilter()
    passed(filter_, fragment("Hello", 0))
    filter_.reconnect()

    pieces = [fragment("Hel", 0), fragment("lo w", 0), fragment("orld", 0), fragment("!", 9)]

    assert passed(filter_, *pieces) == " world!"


def test_a_text_with_a_gap_waits_for_the_event_that_ends_it() -> None:
    filter_ = FragmentFilter()
    passed(filter_, fragment("Hello", 0))
    filter_.reconnect()

    assert passed(filter_, fragment("rld", 7), fragment("!", 8)) == ""
    assert passed(filter_, fragment("other", 0, block="u")) == "other"


def test_a_connection_that_comes_in_the_middle_hands_out_what_there_is() -> None:
    assert passed(FragmentFilter(), fragment("rld", 7), fragment("!", 8)) == "rld!"


def test_the_end_of_a_step_forgets_its_texts() -> None:
    filter_ = FragmentFilter()
    passed(filter_, fragment("Hello", 0))
    end = ReceivedEvent("step.ended", {}, "evt_1", seq=4)

    assert filter_.take(end) is end
    filter_.reconnect()
    assert passed(filter_, fragment("Hello", 0)) == "Hello"
