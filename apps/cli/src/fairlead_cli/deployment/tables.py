"""Creates the roles of a deployment in Postgres, and creates or updates its tables."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from fairlead_cli.embedded.postgres.access import add_password
from fairlead_cli.errors import CommandError
from fairlead_cli.options.stack import ADMIN_VARIABLE, ROLE_VARIABLES
from fairlead_projector import database
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import migrate
from fairlead_projector.roles.creation import DatabaseLogins, create_roles, read_login
from fairlead_service.postgres_failure import explain_postgres_failure


def create_logins(env: Mapping[str, str]) -> list[str]:
    """Create the roles whose addresses are in the environment. Raises CommandError."""
    with _explain_errors():
        logins = DatabaseLogins(*(read_login(add_password(env[name])) for name in ROLE_VARIABLES))
        asyncio.run(_create_roles(env[ADMIN_VARIABLE], logins))
    return [login.name for login in logins]


def migrate_tables(dsn: str) -> None:
    """Apply the missing migrations. Raises CommandError."""
    with _explain_errors():
        asyncio.run(_migrate(dsn))


async def _create_roles(admin_dsn: str, logins: DatabaseLogins) -> None:
    async with await database.connect(add_password(admin_dsn)) as admin:
        await create_roles(admin, logins)


async def _migrate(dsn: str) -> None:
    async with await database.connect(add_password(dsn)) as connection:
        await migrate(connection)


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise CommandError(explain_postgres_failure(error)) from error
    except ProjectorError as error:
        raise CommandError(str(error)) from error
