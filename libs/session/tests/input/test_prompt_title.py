"""The title of a session that nobody has named."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import CREATED, PROPERTY, given, promoted, then

from fairlead_schema.prompt import Prompt
from fairlead_session.input.prompt_title import TITLE_LENGTH_MAX, title_after, unnamed_title

UNNAMED = unnamed_title("2026-11-18T02:03:04.005Z")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ("  Fix\n\tthe   parser\n\nIt breaks.", "Fix the parser It breaks."),
        ("word " * 30, "word " * 11 + "word…"),
        ("x" * 200, "x" * 59 + "…"),
        ("y" * 59 + " z", "y" * 59 + "…"),
        ("a\0b\x1b[31mc", "ab[31mc"),
        ("", UNNAMED),
        (" \n\0", UNNAMED),
    ],
)
def test_the_first_words_of_the_first_prompt_are_the_title(text: str, title: str) -> None:
    """P-28, A-08: one printable line; a prompt without words names nothing."""
    assert title_after(UNNAMED, Prompt(text=text)) == title


@pytest.mark.parametrize("title", ["Mine", "New session", "New session - tomorrow"])
def test_a_title_that_somebody_chose_stays(title: str) -> None:
    """P-28: only the dated title of a new session is replaced."""
    assert title_after(title, Prompt(text="Fix the parser")) == title


def test_a_session_is_named_once() -> None:
    """P-28, I-20: by its first prompt; later ones and compactions change nothing."""
    session = given(CREATED.model_copy(update={"title": UNNAMED}))
    assert session.profile is not None

    named = then(session, promoted("msg_1", "Fix the parser"), promoted("msg_2", "Faster"))

    assert named.profile is not None
    assert (session.profile.title, named.profile.title) == (UNNAMED, "Fix the parser")
    assert named.profile.updated == session.profile.updated


@for_all(st.text(max_size=1_000))
@PROPERTY
def test_every_title_is_short_and_printable(text: str) -> None:
    """P-28."""
    title = title_after(UNNAMED, Prompt(text=text))

    assert 0 < len(title) <= TITLE_LENGTH_MAX
    assert title.isprintable()
