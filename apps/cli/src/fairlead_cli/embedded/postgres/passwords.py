"""The passwords of the roles of Postgres: a file for each, in the form that clients of Postgres read."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_cli.embedded.private_files import write_private

ANYWHERE: Final = "*:*:*:"
"""Any host, port and database."""


@dataclass(frozen=True, slots=True)
class PostgresPasswords:
    """The password files of one directory."""

    directory: Path

    def file(self, role: str) -> Path:
        return self.directory / role

    def ensure(self, role: str) -> str:
        """The password of a role; generated when it has none."""
        if not self.has(role):
            self.store(role, generate_password())
        return self._line(role).rpartition(":")[2]

    def has(self, role: str) -> bool:
        """Whether the role's file contains a password. A full disk leaves an empty file."""
        start = f"{ANYWHERE}{role}:"
        return self._line(role).startswith(start) and self._line(role) != start

    def store(self, role: str, password: str) -> None:
        """Write the password of a role."""
        write_private(self.file(role), f"{ANYWHERE}{role}:{password}\n")

    def _line(self, role: str) -> str:
        path = self.file(role)
        return path.read_text().strip() if path.exists() else ""


def generate_password() -> str:
    """A password of letters, digits, `-` and `_`, so that no file and no statement must quote it."""
    return secrets.token_urlsafe(32)
