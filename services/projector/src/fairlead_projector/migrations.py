"""Applies the numbered migrations in order, once each, whoever comes first."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from psycopg.rows import class_row

from fairlead_projector.database import LOCK_SPACE, MIGRATION_LOCK, Connection, query
from fairlead_projector.errors import DatabaseAhead, MigrationEdited, MigrationGap

_NAMED: Final = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")


class Migration(NamedTuple):
    """One numbered file."""

    number: int
    name: str
    statement: bytes

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.statement).hexdigest()


class Applied(NamedTuple):
    """What the database remembers of a migration."""

    number: int
    name: str
    checksum: str


def shipped() -> tuple[Migration, ...]:
    """The migrations of this release. Raises MigrationGap."""
    folder = files("fairlead_projector") / "sql" / "migrations"
    return ordered({file.name: file.read_bytes() for file in folder.iterdir()})


def ordered(contents: Mapping[str, bytes]) -> tuple[Migration, ...]:
    """Files by their numbers, from 1 without a hole. Raises MigrationGap."""
    found: list[Migration] = []
    for expected, name in enumerate(sorted(contents), start=1):
        match = _NAMED.match(name)
        if match is None or int(match[1]) != expected:
            raise MigrationGap(expected, name)
        found.append(Migration(expected, name, contents[name]))
    return tuple(found)


def missing(known: Sequence[Migration], applied: Sequence[Applied]) -> Sequence[Migration]:
    """What is still to apply. Raises MigrationGap, MigrationEdited or DatabaseAhead."""
    for expected, row in enumerate(applied, start=1):
        if row.number != expected:
            raise MigrationGap(expected, row.name)
        if expected > len(known):
            raise DatabaseAhead(row.name)
        if row.checksum != known[expected - 1].checksum:
            raise MigrationEdited(known[expected - 1].name)
    return known[len(applied) :]


async def migrate(connection: Connection) -> None:
    """Bring the database to this release, in one transaction."""
    async with connection.transaction():
        await hold(connection)
        await apply(connection)


async def hold(connection: Connection) -> None:
    """Keep every other migration out until this transaction ends."""
    key = {"space": LOCK_SPACE, "key": MIGRATION_LOCK}
    await connection.execute(query("lock_migrations"), key)
    await connection.execute(query("create_migration_table"))


async def apply(connection: Connection) -> None:
    """Apply what is missing, inside the caller's transaction."""
    async with connection.cursor(row_factory=class_row(Applied)) as cursor:
        await cursor.execute(query("list_migrations"))
        applied = await cursor.fetchall()
    for migration in missing(shipped(), applied):
        await connection.execute(migration.statement)
        record = {
            "number": migration.number,
            "name": migration.name,
            "checksum": migration.checksum,
        }
        await connection.execute(query("record_migration"), record)
