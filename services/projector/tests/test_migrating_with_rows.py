"""A database with rows gets new migrations while services of the earlier release go on."""

import asyncio
from contextlib import suppress

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import make_conninfo

from fairlead_projector import database
from fairlead_projector.database import query
from fairlead_projector.errors import MigrationRunning
from fairlead_projector.migrations import is_migrated, load_migrations, migrate, try_migrate
from fairlead_projector.roles.creation import create_roles
from fairlead_projector.roles.names import PROJECTOR
from services.projector.tests.test_roles import LOGINS, drop_roles

pytestmark = pytest.mark.integration

EARLIER = 7
SESSION = (
    "INSERT INTO projection.session (tenant, session_id, seq, position, project_id, title,"
    " directory, tokens, created_at, updated_at)"
    " VALUES ('default', %s, 1, 1, 'p', 'Fix it', '/w', '{}', 1, 1)"
)
INDEXES = "SELECT indexrelid::regclass::text, indisvalid FROM pg_index"


async def create_earlier(dsn: str, count: int = EARLIER) -> None:
    """The tables of the earlier release, with two sessions."""
    async with await database.connect(dsn) as owner:
        await owner.execute(query("create_migration_table"))
        for migration in load_migrations()[:count]:
            await owner.execute(migration.in_transaction)
            row = {name: getattr(migration, name) for name in ("number", "name", "checksum")}
            await owner.execute(query("record_migration"), row)
        await owner.execute(query("grant_rights"))
        for session_id in ("ses_1", "ses_2"):
            await owner.execute(SESSION, (session_id,))


def load_indexes(dsn: str) -> dict[str, bool]:
    with psycopg.connect(dsn) as connection:
        return dict(connection.execute(INDEXES).fetchall())


def load_titles(dsn: str) -> list[str]:
    statement = "SELECT session_id FROM projection.session_title ORDER BY session_id"
    with psycopg.connect(dsn) as connection:
        return [row[0] for row in connection.execute(statement)]


async def test_indexes_are_built_beside_a_writer_that_is_not_stopped(dsn: str) -> None:
    """The transaction of a writer stays open while indexes are built; they are valid once it ends."""
    await create_earlier(dsn)
    async with await database.connect(dsn) as writer, await database.connect(dsn) as owner:
        migrating: asyncio.Task[None] | None = None
        try:
            async with writer.transaction():
                await writer.execute("UPDATE projection.checkpoint SET position = position")
                migrating = asyncio.create_task(migrate(owner))
                await asyncio.sleep(0.3)
            async with await database.connect(dsn) as other:
                await other.execute(SESSION, ("ses_3",))
            async with asyncio.timeout(30):
                await migrating
        finally:
            if migrating is not None:
                migrating.cancel()
                with suppress(asyncio.CancelledError):
                    await migrating

        assert await is_migrated(owner)
    indexes = load_indexes(dsn)
    assert indexes["projection.session_to_look_at"]
    assert "projection.session_moving" not in indexes
    assert all(indexes.values())
    assert load_titles(dsn) == ["ses_1", "ses_2", "ses_3"]


async def test_a_build_that_was_cut_off_is_begun_again(dsn: str) -> None:
    """Postgres keeps a broken index under its name. It must not pass for the finished one."""
    await create_earlier(dsn)
    async with await database.connect(dsn) as owner:
        with pytest.raises(errors.UniqueViolation):
            await owner.execute(
                "CREATE UNIQUE INDEX CONCURRENTLY session_by_project ON projection.session (tenant)"
            )
        assert load_indexes(dsn)["projection.session_by_project"] is False

        await migrate(owner)

    assert all(load_indexes(dsn).values())


async def test_a_writer_of_the_earlier_release_keeps_the_titles_too(dsn: str) -> None:
    """The trigger works under the projector's role; a removed session takes its title with it."""
    async with await database.connect(dsn) as admin:
        await create_roles(admin, LOGINS)
    try:
        await create_earlier(dsn)
        async with await database.connect(dsn) as owner:
            await migrate(owner)
        async with await database.connect(make_conninfo(dsn, user=PROJECTOR)) as writer:
            await writer.execute(SESSION, ("ses_3",))
            await writer.execute("DELETE FROM projection.session WHERE session_id = 'ses_1'")
            await writer.execute("UPDATE projection.session SET title = 'New' WHERE true")

        assert load_titles(dsn) == ["ses_2", "ses_3"]
        with psycopg.connect(dsn) as connection:
            titles = connection.execute("SELECT DISTINCT title FROM read.session_title").fetchall()
        assert titles == [("New",)]
    finally:
        drop_roles(dsn)


async def test_one_process_migrates_and_the_others_say_that_they_wait(dsn: str) -> None:
    async with await database.connect(dsn) as first, await database.connect(dsn) as second:
        assert await database.try_lock(first, database.MIGRATION_LOCK)
        with pytest.raises(MigrationRunning):
            await try_migrate(second)
        waiting = asyncio.create_task(migrate(second))
        await asyncio.sleep(0.3)
        assert not waiting.done()

        await first.close()
        async with asyncio.timeout(30):
            await waiting

        assert await is_migrated(second)


async def test_a_table_that_somebody_holds_delays_a_migration_and_no_reader(dsn: str) -> None:
    """A migration that waits for a lock would stop everybody behind it, so it gives way."""
    await create_earlier(dsn)
    async with await database.connect(dsn) as holder, await database.connect(dsn) as owner:
        migrating: asyncio.Task[None]
        async with holder.transaction():
            await holder.execute("LOCK TABLE projection.session IN ROW EXCLUSIVE MODE")
            migrating = asyncio.create_task(migrate(owner))
            await asyncio.sleep(2.5)
            async with await database.connect(dsn) as reader, asyncio.timeout(10):
                await reader.execute("UPDATE projection.session SET seq = 2")
            assert not migrating.done()
        async with asyncio.timeout(30):
            await migrating

    assert load_titles(dsn) == ["ses_1", "ses_2"]


async def test_a_migration_that_meets_a_writer_crosswise_tries_again(dsn: str) -> None:
    """It has the sessions and wants the checkpoints, and a projector the other way round."""
    await create_earlier(dsn, count=9)
    async with await database.connect(dsn) as writer, await database.connect(dsn) as owner:
        migrating: asyncio.Task[None] | None = None
        try:
            async with writer.transaction():
                await writer.execute("UPDATE projection.checkpoint SET position = position")
                migrating = asyncio.create_task(migrate(owner))
                await wait_until_blocked(dsn)
                # Postgres ends the one that waited longer: the migration.
                await writer.execute("UPDATE projection.session SET title = 'written'")
            async with asyncio.timeout(60):
                await migrating
        finally:
            if migrating is not None:
                migrating.cancel()
                await asyncio.gather(migrating, return_exceptions=True)

        assert await is_migrated(owner)
    assert load_titles(dsn) == ["ses_1", "ses_2"]


async def wait_until_blocked(dsn: str) -> None:
    """Wait until somebody waits for a lock on the checkpoints."""
    statement = (
        "SELECT count(*) FROM pg_locks"
        " WHERE NOT granted AND relation = 'projection.checkpoint'::regclass"
    )
    async with asyncio.timeout(30), await database.connect(dsn) as looker:
        while await database.single_cell(await looker.execute(statement)) == 0:
            await asyncio.sleep(0.02)


async def test_the_pieces_of_a_title_are_those_that_its_index_was_built_with(dsn: str) -> None:
    """A migration replaced the function under an index, so both must name the same pieces."""
    pieces = "SELECT DISTINCT unnest(read.title_pieces('acme', %s, %s)) ORDER BY 1"
    found: list[list[tuple[str]]] = []
    async with await database.connect(dsn) as owner:
        await create_earlier(dsn)
        for migration in load_migrations()[EARLIER:]:
            await owner.execute(migration.in_transaction)
            if migration.name.endswith(("_session_titles.sql", "_quick_title_pieces.sql")):
                for title in ("Fix ÄÖ the the", "a", "", "漢字"):
                    for shortest in (1, 3):
                        cursor = await owner.execute(pieces, (title, shortest))
                        found.append(await cursor.fetchall())

    assert found[:8] == found[8:]
    assert ("acme\nthe",) in found[0]
