"""Applies the numbered migrations in order, each once. The first process to come applies them.

A new database gets all of them in one transaction. A database with rows gets each in a transaction of
its own; one that builds indexes of large tables runs outside a transaction, while services go on.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Final, NamedTuple

from psycopg import errors, sql
from psycopg.rows import class_row

from fairlead_projector.database import (
    LOCK_SPACE,
    MIGRATION_LOCK,
    Connection,
    query,
    single_cell,
    try_lock,
)
from fairlead_projector.errors import (
    DatabaseAhead,
    MigrationEdited,
    MigrationGap,
    MigrationRunning,
    NotMigrated,
)

ONLINE: Final = b"-- Runs outside a transaction."
# Nobody waits inside a statement: a waiting statement would stop the concurrent build of an index.
LOCK_POLL_S: Final = 0.2
TABLE_LOCK_TRIES: Final = 30
TABLE_LOCK_PAUSE_S: Final = 1.0

_FILE_NAME: Final = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
_LOCK: Final = {"space": LOCK_SPACE, "key": MIGRATION_LOCK}


class Migration(NamedTuple):
    """One numbered file."""

    number: int
    name: str
    statement: bytes

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.statement).hexdigest()

    @property
    def is_online(self) -> bool:
        """Whether the migration runs outside a transaction. Each of its statements may run again."""
        return self.statement.startswith(ONLINE)

    @property
    def steps(self) -> tuple[bytes, ...]:
        """The statements of an online migration."""
        return tuple(step.strip() for step in self.statement.split(b";\n") if step.strip())

    @property
    def in_transaction(self) -> bytes:
        """The statements for an empty database, where nobody waits for the build of an index."""
        return self.statement.replace(b" CONCURRENTLY", b"")


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
    """Apply missing migrations, or wait while another process does. Raises NotMigrated if this role may not."""
    while True:
        try:
            return await try_migrate(connection)
        except MigrationRunning:
            await asyncio.sleep(LOCK_POLL_S)


async def try_migrate(connection: Connection) -> None:
    """Apply missing migrations, if there are any.

    Raises NotMigrated if this role may not, MigrationRunning while another process applies them.
    """
    try:
        if not await is_migrated(connection):
            await migrate(connection, wait=False)
    except errors.InsufficientPrivilege as error:
        raise NotMigrated(connection.info.user) from error


async def is_migrated(connection: Connection) -> bool:
    """Whether the database has every migration of this release."""
    try:
        return not missing_migrations(load_migrations(), await _list_applied(connection))
    except errors.UndefinedTable:
        return False


async def migrate(connection: Connection, *, wait: bool = True) -> None:
    """Bring the database to this release. The roles get their rights again. Safe to repeat.

    Without `wait`, raises MigrationRunning while another process migrates.
    """
    async with _exclude_others(connection, wait=wait):
        await connection.execute(query("create_migration_table"))
        applied = await _list_applied(connection)
        if not applied:
            async with connection.transaction():
                await apply_missing(connection)
            return
        for migration in missing_migrations(load_migrations(), applied):
            if migration.is_online:
                await _apply_online(connection, migration)
            else:
                await _apply_alone(connection, migration)
        await connection.execute(query("grant_rights"))


async def lock_migrations(connection: Connection) -> None:
    """Keep other processes from migrating until this transaction ends."""
    while True:
        cursor = await connection.execute(query("try_lock_transaction"), _LOCK)
        if await single_cell(cursor):
            break
        await asyncio.sleep(LOCK_POLL_S)
    await connection.execute(query("create_migration_table"))


async def apply_missing(connection: Connection) -> None:
    """Apply the missing migrations to empty tables and give rights to roles, in the caller's transaction."""
    for migration in missing_migrations(load_migrations(), await _list_applied(connection)):
        await connection.execute(migration.in_transaction)
        await _record(connection, migration)
    await connection.execute(query("grant_rights"))


@asynccontextmanager
async def _exclude_others(connection: Connection, *, wait: bool) -> AsyncIterator[None]:
    while not await try_lock(connection, MIGRATION_LOCK):
        if not wait:
            raise MigrationRunning
        await asyncio.sleep(LOCK_POLL_S)
    try:
        yield
    finally:
        with suppress(errors.Error):  # A lost connection has released its locks.
            await connection.execute(query("unlock"), _LOCK)


async def _apply_online(connection: Connection, migration: Migration) -> None:
    cursor = await connection.execute(query("list_invalid_indexes"))
    for (name,) in await cursor.fetchall():
        drop = sql.SQL("DROP INDEX {}").format(sql.Identifier("projection", name))
        await connection.execute(drop)
    for step in migration.steps:
        await connection.execute(step)
    await _record(connection, migration)


async def _apply_alone(connection: Connection, migration: Migration) -> None:
    """Apply one migration. Services hold locks on tables only for moments, so it tries again.

    A writer may take two tables in the opposite order. Postgres then ends one of the two.
    """
    for _attempt in range(TABLE_LOCK_TRIES - 1):
        with suppress(errors.LockNotAvailable, errors.DeadlockDetected):
            return await _apply_once(connection, migration)
        await asyncio.sleep(TABLE_LOCK_PAUSE_S)
    return await _apply_once(connection, migration)


async def _apply_once(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(query("set_lock_timeout"))
        await connection.execute(migration.statement)
        await _record(connection, migration)
        # Services of the earlier release go on meanwhile, and need their rights at once.
        await connection.execute(query("grant_rights"))


async def _record(connection: Connection, migration: Migration) -> None:
    row = {"number": migration.number, "name": migration.name, "checksum": migration.checksum}
    await connection.execute(query("record_migration"), row)


async def _list_applied(connection: Connection) -> Sequence[AppliedMigration]:
    async with connection.cursor(row_factory=class_row(AppliedMigration)) as cursor:
        await cursor.execute(query("list_migrations"))
        return await cursor.fetchall()
