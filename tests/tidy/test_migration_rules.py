"""Migrations run under live traffic: no statement holds a lock for long, and no file that was shipped changes."""

from pathlib import Path

import pytest

from tests.tidy.migration_rules import ONLINE, find_long_locks

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "services/projector/src/fairlead_projector/sql/migrations"
# Shipped before the rules, when no installation had tables of a size. A shipped migration never changes.
BEFORE_THE_RULES = {
    "0002_pending_asks.sql",
    "0003_interrupts_and_rests.sql",
    "0004_execution.sql",
    "0005_tenant_totals.sql",
    "0010_releases_and_restores.sql",
}


def test_no_migration_holds_a_lock_for_long() -> None:
    found = {path.name: find_long_locks(path.read_text()) for path in sorted(FOLDER.iterdir())}

    assert {name: why for name, why in found.items() if why and name not in BEFORE_THE_RULES} == {}
    assert {name for name in BEFORE_THE_RULES if not found[name]} == set()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX x ON projection.session (tenant);",
        "CREATE UNIQUE INDEX x ON projection.session (tenant);",
        "CREATE INDEX CONCURRENTLY x ON projection.session (tenant);",
        "DROP INDEX projection.x;",
        "ALTER TABLE projection.session ADD CONSTRAINT c CHECK (seq > 0);",
        "ALTER TABLE projection.session ADD COLUMN n integer CHECK (n > 0);",
        "ALTER TABLE projection.session ADD COLUMN t timestamptz DEFAULT now();",
        "ALTER TABLE projection.session ADD COLUMN g bigint GENERATED ALWAYS AS (seq) STORED;",
        "ALTER TABLE projection.session ALTER COLUMN seq TYPE numeric;",
        "ALTER TABLE projection.session ALTER COLUMN title SET NOT NULL;",
        "ALTER TABLE projection.session RENAME COLUMN title TO name;",
        "ALTER TABLE projection.session DROP COLUMN title;",
        "DROP TABLE projection.session_title;",
        "UPDATE projection.session SET title = '';",
        "LOCK TABLE projection.session;",
    ],
)
def test_a_statement_that_takes_a_long_lock_is_found(statement: str) -> None:
    assert find_long_locks(f"-- A change.\n{statement}\n")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE projection.new (n int CHECK (n > 0));\nCREATE INDEX x ON projection.new (n);",
        "ALTER TABLE projection.session ADD COLUMN n jsonb NOT NULL DEFAULT '{}', ADD COLUMN m text;",
        "ALTER TABLE projection.session ADD CONSTRAINT c CHECK (seq > 0) NOT VALID;",
        f"{ONLINE}\nCREATE INDEX CONCURRENTLY IF NOT EXISTS x ON projection.session (tenant);",
        f"{ONLINE}\nUPDATE projection.session SET title = '' WHERE title IS NULL;",
        "CREATE OR REPLACE VIEW read.session AS SELECT * FROM projection.session;",
    ],
)
def test_a_change_that_others_do_not_notice_is_allowed(text: str) -> None:
    assert find_long_locks(text) == []
