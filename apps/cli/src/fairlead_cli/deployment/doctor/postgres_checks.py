"""Asks Postgres, for `fairlead doctor`."""

from typing import Final

import psycopg

from fairlead_cli.checks import Finding
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_projector.database import Connection
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import is_migrated

TIMEOUT_S: Final = 5.0


async def check_postgres(dsn: str) -> Finding:
    """Does Postgres answer, and are its tables up to date?"""
    try:
        connection = await psycopg.AsyncConnection.connect(
            add_password(dsn), connect_timeout=int(TIMEOUT_S), autocommit=True
        )
    except psycopg.Error as error:
        detail = " ".join(str(error).split())
        return Finding("postgres", "fail", detail, "start Postgres, or correct [postgres] dsn")
    async with connection:
        about = f"version {connection.info.server_version // 10000}, role {connection.info.user}"
        return await _check_tables(connection, about)


async def _check_tables(connection: Connection, about: str) -> Finding:
    """Are the tables up to date? The role of the gateway may not see that, and need not."""
    try:
        migrated = await is_migrated(connection)
    except psycopg.errors.InsufficientPrivilege:
        return Finding("postgres", "ok", about)
    except ProjectorError as error:
        return Finding("postgres", "fail", f"{about}: {error}", "install the newest release")
    if migrated:
        return Finding("postgres", "ok", f"{about}, tables up to date")
    return Finding("postgres", "warn", f"{about}, migrations are missing", "run `fairlead migrate`")
