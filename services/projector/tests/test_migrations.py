"""Migrations are numbered without a hole and never edited."""

import pytest

from fairlead_projector.errors import DatabaseAhead, MigrationEdited, MigrationGap
from fairlead_projector.migrations import Applied, missing, ordered, shipped

FILES = {"0001_a.sql": b"SELECT 1", "0002_b.sql": b"SELECT 2"}
KNOWN = ordered(FILES)
SEEN = [Applied(one.number, one.name, one.checksum) for one in KNOWN]


def test_the_shipped_migrations_are_in_order() -> None:
    assert [one.number for one in shipped()] == list(range(1, len(shipped()) + 1))


@pytest.mark.parametrize("names", [("0002_b.sql",), ("0001_a.sql", "0003_c.sql"), ("first.sql",)])
def test_a_hole_in_the_numbers_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(MigrationGap):
        ordered(dict.fromkeys(names, b""))


def test_only_what_is_new_is_applied() -> None:
    assert missing(KNOWN, SEEN[:1]) == KNOWN[1:]
    assert missing(KNOWN, SEEN) == ()


def test_an_edited_migration_is_refused() -> None:
    with pytest.raises(MigrationEdited):
        missing(KNOWN, [SEEN[0]._replace(checksum="other")])


def test_a_hole_in_the_record_is_refused() -> None:
    with pytest.raises(MigrationGap):
        missing(KNOWN, SEEN[1:])


def test_a_newer_database_is_refused() -> None:
    with pytest.raises(DatabaseAhead):
        missing(KNOWN[:1], SEEN)
