"""Server-sent events: framing rules, for any split of the bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_llm import sse
from fairlead_llm.sse import Frame


def read(*chunks: bytes) -> list[Frame]:
    parser = sse.START
    frames: list[Frame] = []
    for chunk in chunks:
        parser, new_frames = sse.feed(parser, chunk)
        frames += new_frames
    return frames


def test_a_data_line_and_a_blank_line_make_a_frame() -> None:
    assert read(b'data: {"a":1}\n\n') == [Frame(b'{"a":1}')]


def test_a_frame_without_its_blank_line_is_not_dispatched() -> None:
    assert read(b"data: half\n") == []


def test_several_data_lines_are_joined_by_newlines() -> None:
    assert read(b"data: one\ndata:two\ndata\n\n") == [Frame(b"one\ntwo\n")]


def test_only_one_leading_space_is_dropped() -> None:
    assert read(b"data:  padded  \n\n") == [Frame(b" padded  ")]


def test_comments_and_unknown_fields_are_ignored() -> None:
    body = b": PROCESSING\n\n: again\nname: 7\nretry: 10\ndata: x\n: inside\n\n"

    assert read(body) == [Frame(b"x")]


def test_an_event_name_travels_with_its_data() -> None:
    assert read(b"event: error\ndata: {}\n\n") == [Frame(b"{}", "error")]


def test_an_id_travels_with_its_data() -> None:
    assert read(b"id: 7\ndata: x\n\ndata: y\n\n") == [Frame(b"x", id="7"), Frame(b"y")]


def test_an_event_without_data_is_not_dispatched() -> None:
    assert read(b"event: ping\n\n") == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_is_understood(end: bytes) -> None:
    body = end.join([b"data: one", b"data: two", b"", b"data: three", b"", b""])

    assert read(body) == [Frame(b"one\ntwo"), Frame(b"three")]


def test_a_byte_order_mark_is_dropped_only_at_the_start() -> None:
    bom = b"\xef\xbb\xbf"

    assert read(bom[:1], bom[1:] + b"data: a\n\ndata: " + bom + b"\n\n") == [
        Frame(b"a"),
        Frame(bom),
    ]


def test_unicode_line_separators_do_not_end_a_line() -> None:
    data = "a\u2028b\u0085c\x0bd\x0ce".encode()

    assert read(b"data: " + data + b"\n\n") == [Frame(data)]


def test_a_frame_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "FRAME_BYTES_MAX", 10)

    with pytest.raises(sse.FrameTooLarge):
        read(b"data: 12345", b"6789")


def test_a_large_frame_in_many_small_reads_is_read_in_one_pass() -> None:
    """A join at every chunk would copy the frame thousands of times."""
    piece, reads = b"x" * 500, 20_000

    frames = read(b"data: ", *([piece] * reads), b"\n", b"\n")

    assert [len(frame.data) for frame in frames] == [len(piece) * reads]


def count_pieces(state: sse.ParserState) -> int:
    count, pieces = 0, state.pieces
    while pieces is not None:
        count, pieces = count + 1, pieces[1]
    return count


@pytest.mark.parametrize("size", [1, 3, 200])
def test_a_frame_in_tiny_reads_takes_little_more_room_than_its_bytes(size: int) -> None:
    """One object per read would take a hundred bytes for each byte of the frame."""
    state = sse.START
    for number in range(50_000):
        state, frames = sse.feed(state, b"x" * size)
        assert not frames
        if number % 1000 == 0:
            assert count_pieces(state) <= 20

    assert state.size == 50_000 * size
    _, frames = sse.feed(state, b"\ndata: end\n\n")
    assert [frame.data for frame in frames] == [b"end"]


LINES = st.sampled_from(
    [
        b"",
        b": note",
        b"data: a",
        b"data: \xc3\xa9\xe2\x80\xa8",
        b"data",
        b"event: e",
        b"\xef\xbb\xbf",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(
    lines=st.lists(st.tuples(LINES, ENDS)),
    bom=st.booleans(),
    cuts=st.lists(st.integers(0, 200)),
)
def test_any_split_of_the_bytes_gives_the_same_frames(
    *, lines: list[tuple[bytes, bytes]], bom: bool, cuts: list[int]
) -> None:
    body = (b"\xef\xbb\xbf" if bom else b"") + b"".join(line + end for line, end in lines)
    edges = sorted({0, len(body), *(min(cut, len(body)) for cut in cuts)})
    parts = [body[a:b] for a, b in pairwise(edges)]

    assert read(*parts) == read(body)
    assert read(*(bytes([byte]) for byte in body)) == read(body)
