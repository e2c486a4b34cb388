"""Who may use the embedded Postgres: its roles, a password file for each, and their addresses.

An address names the password's file instead of the password, so it may be shown and logged.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from fairlead_cli.embedded.postgres.passwords import ANYWHERE, PostgresPasswords
from fairlead_cli.errors import StateUnusable
from fairlead_projector import database
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import migrate
from fairlead_projector.roles.creation import DatabaseLogins, Login, create_roles
from fairlead_projector.roles.names import GATEWAY, MIGRATOR, PROJECTOR

ADMIN: Final = "postgres"
DATABASE: Final = "postgres"
# A socket has no port, but its name contains one.
SOCKET_NUMBER: Final = 5432
SOCKET_NAME: Final = f".s.PGSQL.{SOCKET_NUMBER}"
# Sockets only, and no connection without a password.
CLIENT_RULES: Final = "# Written by `fairlead up`; changes are lost.\nlocal all all scram-sha-256\n"


@dataclass(frozen=True, slots=True)
class PostgresAccess:
    """The socket of one Postgres, and the passwords of its roles."""

    socket_directory: Path
    passwords: PostgresPasswords

    @property
    def socket(self) -> Path:
        return self.socket_directory / SOCKET_NAME

    def dsn(self, role: str) -> str:
        """The address for one role."""
        return make_conninfo(
            host=str(self.socket_directory),
            port=SOCKET_NUMBER,
            user=role,
            dbname=DATABASE,
            passfile=str(self.passwords.file(role)),
        )

    def login(self, role: str) -> Login:
        """The name and the password of a role."""
        return Login(role, self.passwords.ensure(role))

    def service_dsns(self) -> dict[str, str]:
        """The address for each service that uses Postgres: its own role, and no other."""
        return {"projector": self.dsn(PROJECTOR), "gateway": self.dsn(GATEWAY)}

    async def migrate(self) -> None:
        """Create the roles as the administrator, then the tables as the migrator.

        Raises StateUnusable.
        """
        logins = DatabaseLogins(self.login(MIGRATOR), self.login(PROJECTOR), self.login(GATEWAY))
        try:
            async with await database.connect(add_password(self.dsn(ADMIN))) as admin:
                await create_roles(admin, logins)
            async with await database.connect(add_password(self.dsn(MIGRATOR))) as owner:
                await migrate(owner)
        except (psycopg.Error, ProjectorError) as error:
            raise StateUnusable(
                f"the tables in Postgres cannot be migrated ({error}): install the newest release,"
                " or choose another directory with --state"
            ) from error


def add_password(dsn: str) -> str:
    """The address with the password from our file, for a connection of this process only.

    Clients prefer `PGPASSWORD` to a password file, and people set that variable for other servers.
    An address without a file, or with a file that we did not write, stays as it is.
    """
    parts = conninfo_to_dict(dsn)
    try:
        line = Path(str(parts["passfile"])).read_text().strip()
    except (KeyError, OSError):
        return dsn
    start = f"{ANYWHERE}{parts.get('user')}:"
    if not line.startswith(start) or "\n" in line:
        return dsn
    return make_conninfo(dsn, password=line.removeprefix(start))
