"""The table of covered behaviours is what the tests say, and every gap has its reason."""

import pytest

from tests.tidy.coverage_reasons import DECIDED, IN_PART, NOT_BUILT
from tests.tidy.coverage_table import TABLE, Unexplained, citations, cited_ids, ids, table


def test_the_coverage_table_is_up_to_date() -> None:
    assert TABLE.read_text() == table(ids(), citations()), "run `make coverage`"


def test_a_behaviour_without_a_test_or_a_reason_is_refused() -> None:
    assert "| A-01 | `test_x` (tests/tidy) |" in table(
        ["A-01"], {"A-01": ["`test_x` (tests/tidy)"]}
    )
    for id_ in list(NOT_BUILT)[:1]:
        assert f"| {id_} | not built: " in table([id_], {})
    assert "| B-18 | decided otherwise: " in table(["B-18"], {})
    assert table(["F-35"], {"F-35": ["`test_x` (tests/tidy)"]}).endswith(
        f"| F-35 | decided otherwise: {DECIDED['F-35']}; tests: `test_x` (tests/tidy) |\n"
    )
    with pytest.raises(Unexplained, match="A-01"):
        table(["A-01"], {})


@pytest.mark.parametrize(
    ("name", "docstring", "expected"),
    [
        ("test_h30_a_stream_replays", "", {"H-30"}),
        ("test_h30_a_stream_replays", "H-31, I-02: in order.", {"H-30", "H-31", "I-02"}),
        ("test_a_stream_replays", "As B-06 says.", {"B-06"}),
        ("test_a_page_of_a50_items", "", set()),
        ("test_a_stream_replays", "", set()),
    ],
)
def test_a_test_cites_by_its_name_and_its_docstring(
    name: str, docstring: str, expected: set[str]
) -> None:
    assert cited_ids(name, docstring) == expected


def test_every_reason_is_for_one_behaviour_and_tests_agree_with_it() -> None:
    """No test shows what is not built. Tests show the part that is built."""
    reasons = {**NOT_BUILT, **IN_PART, **DECIDED}

    assert all(reasons.values())
    assert len(reasons) == len(NOT_BUILT) + len(IN_PART) + len(DECIDED)
    assert reasons.keys() - set(ids()) == set()
    assert NOT_BUILT.keys() & citations().keys() == set()
    assert citations().keys() >= IN_PART.keys()


def test_every_test_cites_only_behaviours_that_exist() -> None:
    assert citations().keys() - set(ids()) == set()
