"""The table of covered behaviours is what the tests say, and no gap in what is finished opens unseen."""

from tests.tidy.coverage_table import DECIDED, SECTIONS, TABLE, citations, ids, missing, table


def test_the_coverage_table_is_up_to_date() -> None:
    assert TABLE.read_text() == table(ids(), citations()), "run `make coverage`"


def test_no_behaviour_of_a_finished_section_lacks_a_test_unseen() -> None:
    assert missing(ids(), citations()) == []


def test_finished_sections_are_looked_at_whole() -> None:
    known = [id_ for id_ in ids() if id_.startswith(SECTIONS)]

    assert {id_[0] for id_ in known} == set("ABCDEFGJKLMNO")
    assert [id_ for id_ in known if id_[0] == "N"] == ["N-23", "N-24", "N-25", "N-26", "N-27"]
    assert missing(known, {}) == [id_ for id_ in known if id_ not in DECIDED]


def test_every_decision_against_a_behaviour_has_its_reason() -> None:
    known = set(ids())

    assert set(DECIDED) <= known
    assert all(id_.startswith(SECTIONS) and reason for id_, reason in DECIDED.items())


def test_every_test_cites_only_behaviours_that_exist() -> None:
    assert set(citations()) - set(ids()) == set()
