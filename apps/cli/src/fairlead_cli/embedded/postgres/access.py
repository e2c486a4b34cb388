"""Who may use the embedded Postgres: its roles, a password file for each, and their addresses.

An address names the password's file instead of the password, so it may be shown and logged.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

from fairlead_cli.embedded.private_files import write_private
from fairlead_projector import database
from fairlead_projector.migrations import migrate
from fairlead_projector.roles import (
    GATEWAY,
    MIGRATOR,
    PROJECTOR,
    DatabaseLogins,
    Login,
    create_roles,
)

ADMIN: Final = "postgres"
DATABASE: Final = "postgres"
# A socket has no port, but its name contains one.
SOCKET_NUMBER: Final = 5432
SOCKET_NAME: Final = f".s.PGSQL.{SOCKET_NUMBER}"
# Sockets only, and no connection without a password.
CLIENT_RULES: Final = "# Written by `fairlead up`; changes are lost.\nlocal all all scram-sha-256\n"

# Any host, port and database.
_ANYWHERE: Final = "*:*:*:"


@dataclass(frozen=True, slots=True)
class PostgresAccess:
    """The socket of one Postgres, and the passwords of its roles."""

    socket_directory: Path
    passwords: Path

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
            passfile=str(self.password_file(role)),
        )

    def password_file(self, role: str) -> Path:
        return self.passwords / role

    def password(self, role: str) -> str:
        """The password of a role; generated when it has none."""
        path = self.password_file(role)
        line = path.read_text().strip() if path.exists() else ""
        if not line.startswith(_ANYWHERE + role + ":"):
            self.store_password(role, generate_password())
            line = path.read_text().strip()
        return line.rpartition(":")[2]

    def login(self, role: str) -> Login:
        """The name and the password of a role."""
        return Login(role, self.password(role))

    def service_dsns(self) -> dict[str, str]:
        """The address for each service that uses Postgres: its own role, and no other."""
        return {"projector": self.dsn(PROJECTOR), "gateway": self.dsn(GATEWAY)}

    async def migrate(self) -> None:
        """Create the roles as the administrator, then the tables as the migrator."""
        logins = DatabaseLogins(self.login(MIGRATOR), self.login(PROJECTOR), self.login(GATEWAY))
        async with await database.connect(self.dsn(ADMIN)) as admin:
            await create_roles(admin, logins)
        async with await database.connect(self.dsn(MIGRATOR)) as owner:
            await migrate(owner)

    def store_password(self, role: str, password: str) -> None:
        """Write the password in the form that clients of Postgres read."""
        write_private(self.password_file(role), f"{_ANYWHERE}{role}:{password}\n")


def generate_password() -> str:
    """A password of letters, digits, `-` and `_`, so that no file and no statement must quote it."""
    return secrets.token_urlsafe(32)
