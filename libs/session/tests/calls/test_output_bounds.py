"""What the model sees of a long text: both ends, within both limits, and never half a character."""

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_session.calls.output_bounds import (
    BYTES_MAX,
    LINES_MAX,
    MeasuredText,
    OutputLimits,
    kept_marker,
    lossy_marker,
    measure_text,
    preview,
    shorten,
)

TEXTS = st.text(st.sampled_from("a\né€🜁 "), max_size=400)
LIMITS = st.builds(OutputLimits, lines=st.integers(1, 40), bytes=st.integers(1, 300))


def of(text: str, limits: OutputLimits) -> MeasuredText:
    return measure_text((text.encode(),), limits)


def test_the_default_limits() -> None:
    """J-24: lines and bytes."""
    assert (OutputLimits().lines, OutputLimits().bytes) == (LINES_MAX, BYTES_MAX) == (2_000, 51_200)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("x" * 51_200, True),
        ("x" * 51_201, False),
        ("é" * 25_600, True),
        ("é" * 25_600 + "x", False),
        ("\n" * 1_999, True),
        ("\n" * 2_000, False),
    ],
)
def test_exactly_at_the_limit_is_whole(text: str, fits: bool) -> None:  # noqa: FBT001
    """J-25: bytes as UTF-8; there is one line more than there are newlines."""
    assert of(text, OutputLimits()).fits(OutputLimits()) is fits
    assert (shorten(text, OutputLimits()) == text) is fits


def test_a_long_text_shows_its_head_a_marker_and_its_tail() -> None:
    """J-31: blank lines around the marker; the head has the larger half."""
    limits = OutputLimits(lines=9, bytes=1_000)
    text = "\n".join(f"line {number}" for number in range(1, 101))

    assert preview(of(text, limits), "[cut]", limits) == (
        "line 1\nline 2\nline 3\n\n[cut]\n\nline 99\nline 100"
    )


def test_bytes_are_shared_as_lines_are() -> None:
    """J-31: what the marker needs comes off first, and the odd byte goes to the head."""
    limits = OutputLimits(bytes=18)

    assert preview(of("abcdefghijklmnopqrstuvwxyz", limits), "[cut]", limits) == (
        "abcde\n\n[cut]\n\nwxyz"
    )


@pytest.mark.parametrize(
    "limits", [OutputLimits(lines=4), OutputLimits(bytes=4), OutputLimits(lines=1, bytes=1)]
)
def test_where_nothing_else_fits_there_is_the_marker_alone(limits: OutputLimits) -> None:
    """J-32: itself cut where it has to be."""
    assert preview(of("x" * 99_999, limits), "[cut]", limits) == "[cut]"[: limits.bytes]


@given(TEXTS, LIMITS)
def test_what_is_shown_keeps_both_limits_and_is_not_cut_again(
    text: str, limits: OutputLimits
) -> None:
    """J-25, J-31: for every text and every limit; whole characters alone."""
    sample = of(text, limits)
    for marker in (kept_marker(sample, "fairlead-output:/out_1"), lossy_marker(sample)):
        text_shown = text if sample.fits(limits) else preview(sample, marker, limits)

        assert len(text_shown.encode()) <= limits.bytes
        assert text_shown.count("\n") < limits.lines
        assert "\ufffd" not in text_shown
        assert shorten(text_shown, limits) == text_shown


@given(TEXTS, LIMITS, st.data())
def test_a_text_measures_the_same_in_whatever_pieces_it_comes(
    text: str, limits: OutputLimits, data: st.DataObject
) -> None:
    """J-26: one budget over everything, also where a character is split between two pieces."""
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    bounds = [0, *cuts, len(raw)]

    pieces = [raw[first:last] for first, last in pairwise(bounds)]

    assert measure_text(pieces, limits) == of(text, limits)


@given(st.binary(max_size=400), LIMITS)
def test_bytes_that_are_no_text_are_shown_as_text_within_the_limits(
    raw: bytes, limits: OutputLimits
) -> None:
    """J-31: a replacement character is longer than the byte it stands for, and is counted so."""
    sample = measure_text((raw,), limits)
    text_shown = preview(sample, lossy_marker(sample), limits)

    assert sample.bytes == len(raw.decode(errors="replace").encode())
    assert len(text_shown.encode()) <= limits.bytes


def test_a_hundred_megabytes_are_measured_in_constant_memory() -> None:
    """J-26: what is held is both ends, whatever the length."""

    def pieces() -> Iterator[bytes]:
        for _ in range(1_600):
            yield b"y" * 65_535 + b"\n"

    tracemalloc.start()
    try:
        sample = measure_text(pieces(), OutputLimits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (sample.bytes, sample.newlines) == (1_600 * 65_536, 1_600)
    assert peak < 4 * 1024 * 1024
