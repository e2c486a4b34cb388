"""The sessions of all tenants with their pools, from the read models."""

from typing import Final, NamedTuple

import psycopg

from fairlead_cli.embedded.postgres.access import add_password
from fairlead_cli.errors import CommandError
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config

TIMEOUT_S: Final = 10
_SESSIONS: Final = """
    SELECT tenant, session_id, directory, pool, archived_at IS NOT NULL
      FROM read.session
     WHERE broken IS NULL
"""


class PooledSession(NamedTuple):
    """A session, where it works, and the pool that the log has for it."""

    at: Address
    directory: str
    pool: str | None
    archived: bool


def read_sessions(config: Config) -> list[PooledSession]:
    """Every session that can be read. Raises CommandError."""
    dsn = add_password(config.postgres.migrate_dsn or config.postgres.dsn)
    try:
        with psycopg.connect(dsn, connect_timeout=TIMEOUT_S) as connection:
            rows = connection.execute(_SESSIONS).fetchall()
    except psycopg.Error as error:
        text = f"The sessions cannot be read from Postgres: {error}; run `fairlead doctor`"
        raise CommandError(text) from error
    return [PooledSession(Address(row[0], row[1]), *row[2:]) for row in rows]
