"""What a model with a small window gets to summarise: always short enough, the newest words first."""

from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_session.compaction.estimate import text_units, tokens, units_within
from fairlead_session.compaction.serialise import join_entries
from fairlead_session.compaction.summary_input import ENTRY_LENGTH_MIN, fit_entries


def test_what_fits_is_not_touched() -> None:
    """The blank line between two entries counts."""
    entries = ("a" * 40, "b" * 40)
    assert fit_entries(entries, 82) == entries
    assert fit_entries(entries, 81) != entries


def test_the_longest_entries_lose_their_ends() -> None:
    short, long, longer = "s" * 100, "l" * 6_000, "m" * 9_000

    first, second, third = fit_entries((short, long, longer), 8_000)

    assert first == short
    assert (len(second), second[:500]) == (len(third), "l" * 500)
    assert second.endswith("more characters were left out]")


def test_too_many_entries_lose_their_middle() -> None:
    entries = tuple(f"{n}:" + "x" * 1_000 for n in range(100))

    first, note, *newest = fit_entries(entries, 4_000)

    assert first.startswith("0:")
    assert note == f"[{99 - len(newest)} entries were left out here]"
    assert [text.partition(":")[0] for text in newest] == [
        str(n) for n in range(100 - len(newest), 100)
    ]
    assert all(len(text) < ENTRY_LENGTH_MIN + 60 for text in (first, *newest))


def test_without_room_for_the_newest_entry_there_is_nothing_to_send() -> None:
    assert fit_entries(("x" * 5_000, "y" * 5_000), 200) == ()


def test_nothing_stays_nothing_without_any_room() -> None:
    assert fit_entries((), -1) == ()


@PROPERTY
@given(st.lists(st.text(alphabet="aé😀\n", max_size=3_000), max_size=12), st.integers(-200, 12_000))
def test_the_result_always_fits(texts: list[str], units_max: int) -> None:
    fitting = fit_entries(tuple(texts), units_max)

    assert text_units(join_entries(fitting)) <= max(0, units_max)


@PROPERTY
@given(st.integers(0, 1_000))
def test_the_longest_text_within_some_tokens_is_known(tokens_max: int) -> None:
    longest = "x" * units_within(tokens_max)
    assert tokens(longest) <= tokens_max < tokens(longest + "x")
