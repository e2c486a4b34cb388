"""Applies the numbered migrations in order, each once. The first process to come applies them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

from psycopg import errors
from psycopg.rows import class_row

from fairlead_projector.database import LOCK_SPACE, MIGRATION_LOCK, Connection, query
from fairlead_projector.errors import DatabaseAhead, MigrationEdited, MigrationGap, NotMigrated

_FILE_NAME: Final = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")


class Migration(NamedTuple):
    """One numbered file."""

    number: int
    name: str
    statement: bytes

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.statement).hexdigest()


class AppliedMigration(NamedTuple):
    """A migration that the database has recorded as applied."""

    number: int
    name: str
    checksum: str


def load_migrations() -> tuple[Migration, ...]:
    """The migrations of this release. Raises MigrationGap."""
    folder = files("fairlead_projector") / "sql" / "migrations"
    return order_migrations({file.name: file.read_bytes() for file in folder.iterdir()})


def order_migrations(contents: Mapping[str, bytes]) -> tuple[Migration, ...]:
    """Sort files by number, from 1 without a gap. Raises MigrationGap."""
    migrations: list[Migration] = []
    for expected, name in enumerate(sorted(contents), start=1):
        match = _FILE_NAME.match(name)
        if match is None or int(match[1]) != expected:
            raise MigrationGap(expected, name)
        migrations.append(Migration(expected, name, contents[name]))
    return tuple(migrations)


def missing_migrations(
    shipped: Sequence[Migration], applied: Sequence[AppliedMigration]
) -> Sequence[Migration]:
    """The migrations still to apply. Raises MigrationGap, MigrationEdited or DatabaseAhead."""
    for expected, row in enumerate(applied, start=1):
        if row.number != expected:
            raise MigrationGap(expected, row.name)
        if expected > len(shipped):
            raise DatabaseAhead(row.name)
        if row.checksum != shipped[expected - 1].checksum:
            raise MigrationEdited(shipped[expected - 1].name)
    return shipped[len(applied) :]


async def ensure_migrated(connection: Connection) -> None:
    """Apply missing migrations, if there are any. Raises NotMigrated if this role may not."""
    try:
        if await is_migrated(connection):
            return
        await migrate(connection)
    except errors.InsufficientPrivilege as error:
        raise NotMigrated(connection.info.user) from error


async def is_migrated(connection: Connection) -> bool:
    """Whether the database has every migration of this release."""
    try:
        return not missing_migrations(load_migrations(), await _list_applied(connection))
    except errors.UndefinedTable:
        return False


async def migrate(connection: Connection) -> None:
    """Bring the database to this release, in one transaction. The roles get their rights again."""
    async with connection.transaction():
        await lock_migrations(connection)
        await apply_missing(connection)


async def lock_migrations(connection: Connection) -> None:
    """Keep other processes from migrating until this transaction ends."""
    key = {"space": LOCK_SPACE, "key": MIGRATION_LOCK}
    await connection.execute(query("lock_migrations"), key)
    await connection.execute(query("create_migration_table"))


async def apply_missing(connection: Connection) -> None:
    """Apply the missing migrations and give rights to roles, inside the caller's transaction."""
    for migration in missing_migrations(load_migrations(), await _list_applied(connection)):
        await connection.execute(migration.statement)
        record = {
            "number": migration.number,
            "name": migration.name,
            "checksum": migration.checksum,
        }
        await connection.execute(query("record_migration"), record)
    await connection.execute(query("grant_rights"))


async def _list_applied(connection: Connection) -> Sequence[AppliedMigration]:
    async with connection.cursor(row_factory=class_row(AppliedMigration)) as cursor:
        await cursor.execute(query("list_migrations"))
        return await cursor.fetchall()
