"""The roles in Postgres: each service may do its own work, and nothing else."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from fairlead_projector import database
from fairlead_projector.errors import NotMigrated, UnusableRole
from fairlead_projector.migrations import ensure_migrated, migrate
from fairlead_projector.projection.rebuild import TABLES, rebuild
from fairlead_projector.roles.creation import DatabaseLogins, Login, create_roles, read_login
from fairlead_projector.roles.names import GATEWAY, MIGRATOR, PROJECTOR

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

LOGINS = DatabaseLogins(
    *(Login(name, f"password of {name}") for name in (MIGRATOR, PROJECTOR, GATEWAY))
)
WRITES = (
    "INSERT INTO {place} SELECT * FROM {place} WHERE false",
    "UPDATE {place} SET {column} = {column} WHERE false",
    "DELETE FROM {place} WHERE false",
    "ALTER TABLE {place} RENAME TO mine",
)
NEW_OBJECTS = (
    "CREATE TABLE public.mine (n int)",
    "CREATE TABLE projection.mine (n int)",
    "CREATE TABLE read.mine (n int)",
    "CREATE TEMPORARY TABLE mine (n int)",
    "CREATE SCHEMA mine",
    "CREATE ROLE mine",
    "CREATE DATABASE mine",
    "DROP SCHEMA projection CASCADE",
    "ALTER TABLE projection.session ADD COLUMN mine int",
    "CREATE VIEW read.mine AS SELECT 1",
    "DELETE FROM public.fairlead_migration",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('postgresql.conf')",
    "SET ROLE fairlead_migrator",
    "SET SESSION AUTHORIZATION fairlead_migrator",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_import('/etc/passwd')",
    "COPY (SELECT 1) TO '/tmp/made-by-a-role'",
    "SELECT pg_ls_dir('.')",
    "SELECT * FROM pg_authid",
    "ALTER SYSTEM SET log_statement = 'all'",
    "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'",
)


@pytest.fixture
def role_dsn(dsn: str) -> Iterator[dict[str, str]]:
    """The address of each role, on a migrated database."""
    asyncio.run(set_up(dsn, LOGINS))
    yield {login.name: make_conninfo(dsn, user=login.name) for login in LOGINS}
    drop_roles(dsn)


async def set_up(dsn: str, logins: DatabaseLogins) -> None:
    async with await database.connect(dsn) as admin:
        await create_roles(admin, logins)
    async with await database.connect(make_conninfo(dsn, user=logins.migrator.name)) as owner:
        await migrate(owner)


def drop_roles(dsn: str, *more: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name in (*more, MIGRATOR, PROJECTOR, GATEWAY):
            role = sql.Identifier(name)
            admin.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            admin.execute(sql.SQL("DROP ROLE {}").format(role))


def is_refused(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> bool:
    try:
        connection.execute(statement.encode())
    except (errors.InsufficientPrivilege, errors.ActiveSqlTransaction):
        return True
    except (errors.ObjectNotInPrerequisiteState, errors.FeatureNotSupported):
        return True  # A view of sums or of computed columns takes no rows, whoever sends them.
    return False


@pytest.mark.parametrize("table", TABLES)
def test_the_gateway_reads_views_and_nothing_else(role_dsn: dict[str, str], table: str) -> None:
    """The gateway connected as the owner of the database (C8): one injected word erased it."""
    with psycopg.connect(role_dsn[GATEWAY], autocommit=True) as connection:
        rows = connection.execute(f"SELECT * FROM read.{table}".encode())  # noqa: S608 - our own names
        [column, *_] = [name.name for name in rows.description or ()]
        writes = [
            pattern.format(place=f"{schema}.{table}", column=column)
            for schema in ("read", "projection")
            for pattern in WRITES
        ]
        assert [text for text in writes if not is_refused(connection, text)] == []
        assert is_refused(connection, f"SELECT * FROM projection.{table}")  # noqa: S608
        assert is_refused(connection, "SELECT * FROM public.fairlead_migration")


@pytest.mark.parametrize("role", [PROJECTOR, GATEWAY])
def test_a_service_makes_no_objects_and_takes_no_other_role(
    role_dsn: dict[str, str], role: str
) -> None:
    with psycopg.connect(role_dsn[role], autocommit=True) as connection:
        assert [text for text in NEW_OBJECTS if not is_refused(connection, text)] == []


def test_the_migrator_is_no_administrator(role_dsn: dict[str, str]) -> None:
    hostile = [text for text in NEW_OBJECTS if text.startswith(("COPY", "CREATE ROLE"))]
    with psycopg.connect(role_dsn[MIGRATOR], autocommit=True) as connection:
        assert [text for text in hostile if not is_refused(connection, text)] == []


async def test_a_projector_projects_under_its_own_role(
    projection: "Projection", log_builder: "LogBuilder", role_dsn: dict[str, str]
) -> None:
    projection.dsn = role_dsn[PROJECTOR]

    async with projection.run():
        await projection.wait_until(projection.is_caught_up)
        await rebuild(role_dsn[MIGRATOR], log_builder.eventlog, progress=lambda _progress: None)
        await projection.wait_until(projection.is_caught_up)


async def test_a_projector_says_who_must_migrate(dsn: str) -> None:
    async with await database.connect(dsn) as admin:
        await create_roles(admin, LOGINS)
    try:
        async with await database.connect(make_conninfo(dsn, user=PROJECTOR)) as connection:
            with pytest.raises(NotMigrated, match="fairlead migrate"):
                await ensure_migrated(connection)
    finally:
        drop_roles(dsn)


async def test_tables_of_an_earlier_release_get_the_migrator_as_owner(dsn: str) -> None:
    """The administrator owned them; creating roles twice changes nothing."""
    async with await database.connect(dsn) as admin:
        await migrate(admin)
        await create_roles(admin, LOGINS)
        await create_roles(admin, LOGINS)
    try:
        async with await database.connect(make_conninfo(dsn, user=MIGRATOR)) as owner:
            await migrate(owner)
            await owner.execute("ALTER TABLE projection.session ADD COLUMN probe int")
        with psycopg.connect(make_conninfo(dsn, user=GATEWAY)) as connection:
            connection.execute("SELECT * FROM read.session")
    finally:
        drop_roles(dsn)


async def test_a_service_may_log_in_under_a_name_of_its_own(dsn: str) -> None:
    logins = DatabaseLogins(LOGINS.migrator, Login("writer", "w"), Login("reader", "r"))
    await set_up(dsn, logins)
    try:
        with psycopg.connect(make_conninfo(dsn, user="reader"), autocommit=True) as connection:
            connection.execute("SELECT * FROM read.session")
            assert is_refused(connection, "SELECT * FROM projection.session")
        with psycopg.connect(make_conninfo(dsn, user="writer"), autocommit=True) as connection:
            connection.execute("DELETE FROM projection.session")
            assert is_refused(connection, "SELECT * FROM read.session")
    finally:
        drop_roles(dsn, "writer", "reader")


@pytest.mark.parametrize(
    "logins",
    [
        DatabaseLogins(Login("one", "x"), Login("one", "x"), Login("two", "x")),
        DatabaseLogins(Login("postgres", "x"), Login("one", "x"), Login("two", "x")),
    ],
    ids=["one name twice", "an administrator"],
)
async def test_roles_that_separate_nothing_are_refused(dsn: str, logins: DatabaseLogins) -> None:
    async with await database.connect(dsn) as admin:
        with pytest.raises(UnusableRole):
            await create_roles(admin, logins)


def test_an_address_without_a_password_names_no_login() -> None:
    assert read_login("postgresql://reader:word@db/fairlead") == Login("reader", "word")
    with pytest.raises(UnusableRole, match="password"):
        read_login("postgresql://reader@db/fairlead")


def test_an_administrator_of_a_hosted_database_is_enough(dsn: str) -> None:
    """Who rents a Postgres gets no superuser: a role that may make roles, and owns the database."""
    rented = make_conninfo(dsn, dbname="rented")
    with psycopg.connect(dsn, autocommit=True) as superuser:
        superuser.execute("CREATE ROLE renter LOGIN CREATEROLE")
        superuser.execute("CREATE DATABASE rented OWNER renter")
    try:
        for _release in range(2):
            asyncio.run(set_up(make_conninfo(rented, user="renter"), LOGINS))

        with psycopg.connect(make_conninfo(rented, user=GATEWAY), autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM read.session").fetchone() == (0,)
            assert is_refused(connection, "CREATE TABLE public.mine (n int)")
    finally:
        with psycopg.connect(dsn, autocommit=True) as superuser:
            superuser.execute("DROP DATABASE rented WITH (FORCE)")
            for name in (MIGRATOR, PROJECTOR, GATEWAY, "renter"):
                superuser.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
