"""The text so far, whatever is lost or asked for: no delta counts twice, and none is missing."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_gateway.live.frames import PIECE_LENGTH_MAX, delta_frames
from fairlead_gateway.live.open_texts import OpenBlocks
from fairlead_schema.delta import Delta, OpenText, TextDelta, ToolOutputDelta


def _delta(text: str, index: int | None) -> TextDelta:
    return TextDelta(assistant_message_id="msg_a", text_id="t", delta=text, index=index)


def _text(deltas: list[Delta]) -> str:
    return "".join(delta.delta for delta in deltas if isinstance(delta, TextDelta))


@given(
    st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=12),
    st.lists(st.sampled_from(["come", "lost", "twice", "ask"]), min_size=12, max_size=12),
)
def test_a_reader_has_the_whole_text_whatever_is_lost(sent: list[str], fates: list[str]) -> None:
    """After a last question the reader has exactly what the runner has, each delta once."""
    blocks = OpenBlocks()
    got: list[Delta] = []

    def ask(number: int) -> None:
        if number:
            so_far = OpenText(so_far=_delta("".join(sent[:number]), 0), deltas=number)
            got.extend(blocks.restore([so_far]))

    for index, (text, fate) in enumerate(zip(sent, fates, strict=False)):
        if fate == "ask":
            ask(index)
        times = {"lost": 0, "twice": 2}.get(fate, 1)
        received = [blocks.receive(_delta(text, index)) for _ in range(times)]
        got += [delta for delta in received if delta is not None]
        if blocks.has_gap:
            ask(index + 1)
    ask(len(sent))

    assert _text(got) == "".join(sent)
    assert _text(blocks.so_far()) == "".join(sent)
    assert not blocks.has_gap


def test_deltas_without_a_number_pass_as_they_are() -> None:
    """Earlier releases do not count, and the output of a command may have gaps."""
    blocks = OpenBlocks()
    output = ToolOutputDelta(assistant_message_id="msg_a", call_id="c", delta="out")

    assert blocks.receive(_delta("x", None)) == _delta("x", None)
    assert blocks.receive(output) == output
    assert blocks.so_far() == []


def test_a_block_that_the_runner_does_not_know_has_ended() -> None:
    blocks = OpenBlocks()
    assert blocks.receive(_delta("late", 7)) is None

    assert blocks.restore([]) == []
    assert not blocks.has_gap
    assert blocks.receive(_delta("later", 8)) is None


def test_a_long_fragment_becomes_several_frames_below_a_mebibyte() -> None:
    text = "\u0001" * (3 * PIECE_LENGTH_MAX + 5)

    frames = delta_frames("ses_1", _delta(text, 0)).split(b"\n\n")[:-1]

    assert len(frames) == 4
    assert max(map(len, frames)) < 1024 * 1024
