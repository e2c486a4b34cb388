"""Frames of a stream: any split of the bytes gives the same frames."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_client import frame_parser
from fairlead_client.frame_parser import FrameParser, FrameTooLong, StreamFrame

STREAM = (
    b": heartbeat\n\nid: 7\ndata: {}\n\nevent: failure\ndata: a\ndata: b\n\n\n\n"
    b"retry: 5\n\n:caught-up\n\ndata:x\n\n"
)
FRAMES = [
    StreamFrame(None, comment="heartbeat"),
    StreamFrame(b"{}", id="7"),
    StreamFrame(b"a\nb", event="failure"),
    StreamFrame(None, comment="caught-up"),
    StreamFrame(b"x"),
]


@given(st.lists(st.integers(0, 200)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_any_split_of_the_bytes_gives_the_same_frames(cuts: list[int], newline: bytes) -> None:
    """A frame ends where its blank line ends, with any of the three line ends."""
    text, parser = STREAM.replace(b"\n", newline), FrameParser()
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})

    frames = [frame for begin, end in pairwise(places) for frame in parser.feed(text[begin:end])]

    assert frames == FRAMES


def test_a_frame_without_an_end_is_refused_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_parser, "FRAME_BYTES_MAX", 100)
    parser = FrameParser()
    parser.feed(b"data: " + b"x" * 80)

    with pytest.raises(FrameTooLong):
        parser.feed(b"x" * 80)
