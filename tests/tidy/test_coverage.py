"""The table of covered behaviours is what the tests say, and no gap in its sections opens unseen."""

from tests.tidy.coverage_table import DECIDED, SECTIONS, TABLE, citations, ids, missing, table


def test_the_coverage_table_is_up_to_date() -> None:
    assert TABLE.read_text() == table(ids(), citations()), "run `make coverage`"


def test_no_behaviour_lacks_a_test_unseen() -> None:
    assert missing(ids(), citations()) == []


def test_every_decision_against_a_behaviour_has_its_reason() -> None:
    known = set(ids())

    assert set(DECIDED) <= known
    assert all(id_[0] in SECTIONS and reason for id_, reason in DECIDED.items())


def test_every_test_cites_only_behaviours_that_exist() -> None:
    assert set(citations()) - set(ids()) == set()
