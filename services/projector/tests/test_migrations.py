"""Migrations are numbered without a hole and never edited."""

import pytest

from fairlead_projector.errors import DatabaseAhead, MigrationEdited, MigrationGap
from fairlead_projector.migrations import (
    AppliedMigration,
    load_migrations,
    missing_migrations,
    order_migrations,
)

FILES = {"0001_a.sql": b"SELECT 1", "0002_b.sql": b"SELECT 2"}
SHIPPED = order_migrations(FILES)
APPLIED = [AppliedMigration(file.number, file.name, file.checksum) for file in SHIPPED]


def test_the_shipped_migrations_are_in_order() -> None:
    assert [file.number for file in load_migrations()] == list(range(1, len(load_migrations()) + 1))


@pytest.mark.parametrize("names", [("0002_b.sql",), ("0001_a.sql", "0003_c.sql"), ("first.sql",)])
def test_a_hole_in_the_numbers_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(MigrationGap):
        order_migrations(dict.fromkeys(names, b""))


def test_only_what_is_new_is_applied() -> None:
    assert missing_migrations(SHIPPED, APPLIED[:1]) == SHIPPED[1:]
    assert missing_migrations(SHIPPED, APPLIED) == ()


def test_an_edited_migration_is_refused() -> None:
    with pytest.raises(MigrationEdited):
        missing_migrations(SHIPPED, [APPLIED[0]._replace(checksum="other")])


def test_a_hole_in_the_record_is_refused() -> None:
    with pytest.raises(MigrationGap):
        missing_migrations(SHIPPED, APPLIED[1:])


def test_a_newer_database_is_refused() -> None:
    with pytest.raises(DatabaseAhead):
        missing_migrations(SHIPPED[:1], APPLIED)
