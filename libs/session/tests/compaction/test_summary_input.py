"""What a model with a small window gets to summarise: always short enough, the newest words first."""

from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_session.compaction.estimate import tokens
from fairlead_session.compaction.summary_input import ENTRY_LENGTH_MIN, fit_entries


def test_what_fits_is_not_touched() -> None:
    assert fit_entries(("a" * 40, "b" * 40), 20) == ("a" * 40, "b" * 40)


def test_the_longest_entries_lose_their_ends() -> None:
    short, long, longer = "s" * 100, "l" * 6_000, "m" * 9_000

    first, second, third = fit_entries((short, long, longer), 2_000)

    assert first == short
    assert (len(second), second[:500]) == (len(third), "l" * 500)
    assert second.endswith("more characters were left out]")


def test_too_many_entries_lose_their_middle() -> None:
    entries = tuple(f"{n}:" + "x" * 1_000 for n in range(100))

    first, note, *newest = fit_entries(entries, 1_000)

    assert first.startswith("0:")
    assert note == f"[{99 - len(newest)} entries were left out here]"
    assert [text.partition(":")[0] for text in newest] == [
        str(n) for n in range(100 - len(newest), 100)
    ]
    assert all(len(text) < ENTRY_LENGTH_MIN + 60 for text in (first, *newest))


def test_without_room_for_the_newest_entry_there_is_nothing_to_send() -> None:
    assert fit_entries(("x" * 5_000, "y" * 5_000), 50) == ()


def test_nothing_stays_nothing_without_any_room() -> None:
    assert fit_entries((), -1) == ()


@PROPERTY
@given(st.lists(st.text(alphabet="aé😀\n", max_size=3_000), max_size=12), st.integers(-50, 3_000))
def test_the_result_always_fits(texts: list[str], tokens_max: int) -> None:
    entries = tuple(texts)

    assert sum(map(tokens, fit_entries(entries, tokens_max))) <= max(0, tokens_max)
