"""Wildcards: the same answers as a regular expression, in a bounded number of steps."""

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_session.people import wildcard
from fairlead_session.people.wildcard import matches

PATTERNS = st.text(alphabet="ab *?/\\\n.", max_size=8)
TEXTS = st.text(alphabet="ab /\\\n.", max_size=12)


def reference(pattern: str, text: str) -> bool:
    """The rules of K-03 and K-04 as a regular expression, which may backtrack."""
    normal = pattern.replace("\\", "/")
    head = normal.removesuffix(" *")
    signs = {"*": ".*", "?": "."}
    body = "".join(signs.get(character) or re.escape(character) for character in head)
    tail = "( .*)?" if head != normal else ""
    return re.fullmatch(body + tail, text.replace("\\", "/"), re.DOTALL) is not None


@given(PATTERNS, TEXTS)
@example("*ab*b?", "abab")
@example("a*a", "a")
@example("?*?", "a")
@example(" *", "")
def test_the_answers_are_those_of_a_regular_expression(pattern: str, text: str) -> None:
    """B7, K-03, K-04: the linear matcher is another way to the same answers."""
    assert matches(pattern, text) is reference(pattern, text)


def steps(pattern: str, text: str) -> int:
    """How many lines of the matcher run."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:  # noqa: ANN401
        nonlocal count
        if frame.f_code.co_filename != wildcard.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        matches(pattern, text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "pattern",
    [
        "*a*a*a*a*b",
        "a*a*a*a*a*a*b",
        "*a?*a?*a?*a?*b",
        "*" * 40 + "b",
        "*?a*?a*?a*?a*c",
        "*a *a *b *",
    ],
)
def test_a_hostile_text_takes_a_bounded_number_of_steps(pattern: str) -> None:
    """B7: four stars and 1 kB took 3.3 s. Ten times the text takes ten times the steps at most."""
    small, large = (steps(pattern, "a" * size) for size in (1_000, 10_000))

    assert small <= 8 * 1_000
    assert large <= 8 * 10_000
