"""Statements that a migration may not have, because services of two releases work on the tables meanwhile."""

import re
from typing import Final, NamedTuple

ONLINE: Final = "-- Runs outside a transaction."


class Rule(NamedTuple):
    """A pattern of a statement, and what it does to a large table."""

    pattern: re.Pattern[str]
    why: str


def _rule(pattern: str, why: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE | re.DOTALL), why)


# A table that the migration itself made is empty, and nobody waits for it.
ON_EXISTING_TABLES: Final = (
    _rule(
        r"CREATE (UNIQUE )?INDEX (?!CONCURRENTLY)",
        "an index of an existing table stops its writers: CONCURRENTLY, outside a transaction",
    ),
    _rule(
        r"ALTER TABLE.*\bADD (CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY)(?!.*NOT VALID)",
        "a constraint reads the whole table: NOT VALID first, VALIDATE in another migration",
    ),
    _rule(
        r"ALTER TABLE.*\bADD COLUMN[^,]*\b(CHECK|REFERENCES|UNIQUE|PRIMARY)\b",
        "a constraint of a new column reads the whole table: NOT VALID in a statement of its own",
    ),
    _rule(
        r"ALTER TABLE.*\bADD COLUMN[^,]*\b(now|clock_timestamp|random|gen_random_uuid|nextval)\s*\(",
        "a default that differs by row writes the whole table",
    ),
    _rule(
        r"ALTER TABLE.*\bADD COLUMN[^,]*\b(GENERATED|SERIAL)\b", "it writes the whole table anew"
    ),
    _rule(
        r"ALTER TABLE.*\bALTER (COLUMN )?\w+ (SET DATA )?TYPE\b", "it writes the whole table anew"
    ),
    _rule(r"ALTER TABLE.*\bSET NOT NULL\b", "it reads the whole table: a CHECK that is NOT VALID"),
    _rule(
        r"ALTER TABLE.*\bRENAME\b|ALTER TABLE.*\bDROP COLUMN\b|DROP TABLE",
        "the release before still uses it: drop it one release later, and never rename",
    ),
)
ANYWHERE: Final = (
    _rule(r"DROP INDEX (?!CONCURRENTLY)", "it waits for every reader, and all wait behind it"),
    _rule(r"REINDEX (?!.*CONCURRENTLY)", "it stops writers"),
    _rule(r"\b(VACUUM FULL|CLUSTER|LOCK TABLE|TRUNCATE)\b", "it keeps everybody out"),
)
IN_A_TRANSACTION: Final = (
    _rule(r"^(UPDATE|DELETE)\b", "rows stay locked until the end: outside a transaction"),
)


def find_long_locks(text: str) -> list[str]:
    """What breaks a rule in a migration, a sentence each."""
    is_online = text.startswith(ONLINE)
    found = []
    statements = _split(text)
    made = {match[1].lower() for each in statements if (match := _MADE.match(each))}
    for statement in statements:
        rules = [*ANYWHERE, *(() if is_online else IN_A_TRANSACTION)]
        if not any(re.search(rf"\b{re.escape(table)}\b", statement.lower()) for table in made):
            rules += ON_EXISTING_TABLES
        found += [
            f"{rule.why}: {statement[:60]}" for rule in rules if rule.pattern.search(statement)
        ]
        if "CONCURRENTLY" in statement and not is_online:
            found.append(f"begin the file with {ONLINE!r}: {statement[:60]}")
    return found


_MADE: Final = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?([\w.]+)", re.IGNORECASE)
_BODY: Final = re.compile(r"\$\$.*?\$\$", re.DOTALL)


def _split(text: str) -> list[str]:
    """The statements of a file, without comments and bodies of functions."""
    plain = _BODY.sub("$$", re.sub(r"--[^\n]*", "", text))
    return [" ".join(each.split()) for each in plain.split(";") if each.strip()]
