"""The secrets of one deployment: a directory for each process, with what that process may know.

A container mounts its own directory and no other. A role of Postgres has its password as a file for
clients (`.pgpass`), and inside an address (`.dsn`) for platforms that hand out variables. Everything is made once and kept: a repeat adds
what a new release needs, writes the grants anew and renews a certificate that expires soon.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from secrets import token_bytes
from typing import Final

from fairlead_cli.deployment.certificates import Authority, needs_renewal
from fairlead_cli.embedded.postgres.passwords import PostgresPasswords, generate_password
from fairlead_cli.embedded.private_files import make_private_directory, write_private
from fairlead_cli.nats_access.keys import KeyChanges, write_keys
from fairlead_cli.options.operations import DEFAULT_DATABASE
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_projector.roles.names import GATEWAY, MIGRATOR, PROJECTOR
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules, worker_identity
from fairlead_service.identity.key_file import add_key
from fairlead_service.identity.keys import mint_key

ADMIN: Final = "fairlead"
"""The administrator of Postgres, whose password only Postgres and the migration get."""
ROLE_READERS: Final = {
    ADMIN: ("migrate",),
    MIGRATOR: ("migrate", "operator"),
    PROJECTOR: ("migrate", "projector"),
    GATEWAY: ("migrate", "gateway"),
}
COOKIE_KEY_BYTES: Final = 32
KEYS_FILE: Final = "keys.json"
CLUSTER: Final = ("nats-1", "nats-2", "nats-3")
STATEFUL_SET: Final = tuple(
    f"nats-{index}.nats{domain}" for index in range(3) for domain in ("", ".fairlead.svc")
)
DEFAULT_HOSTS: Final = ("nats", *CLUSTER, *STATEFUL_SET, "localhost", "127.0.0.1")


def find_secrets(keys_file: Path) -> "SecretsDirectory | None":
    """The directory whose gateway reads a keys file; None if the file belongs to no deployment."""
    secrets = SecretsDirectory(keys_file.absolute().parent.parent)
    is_own = keys_file.absolute() == secrets.keys_file
    return secrets if is_own and (secrets.root / "authority").is_dir() else None


@dataclass(frozen=True, slots=True)
class SecretsDirectory:
    """The root of the directories, and where their readers find Postgres."""

    root: Path
    database: str = DEFAULT_DATABASE
    pools: PoolRules = ONE_POOL

    @property
    def identities(self) -> tuple[str, ...]:
        """Every process with a key of its own."""
        return (*SERVICE_IDENTITIES, *map(worker_identity, self.pools.others))

    @property
    def keys_file(self) -> Path:
        """The keys of HTTP, without which there is no such directory."""
        return self.root / "gateway" / KEYS_FILE

    def write(self, hosts: Sequence[str], now: datetime) -> list[str]:
        """Make what is missing. The lines say what changed. Raises CommandError and LogError."""
        make_private_directory(self.root)
        lines = [
            *self._write_certificates(hosts, now),
            *self._write_nats_keys(),
            *self._write_passwords(),
            *self._write_first_key(),
            *self._write_cookie_key(),
        ]
        return lines or [f"{self.root}: everything is there"]

    def _write_certificates(self, hosts: Sequence[str], now: datetime) -> list[str]:
        authority = Authority(self._directory("authority"))
        lines = [f"{authority.certificate_file}: created"] if authority.ensure(now) else []
        nats = self._directory("nats")
        if needs_renewal(nats / "tls.crt", authority.certificate_file, hosts, now):
            certificate, key = authority.issue(hosts, now)
            write_private(nats / "tls.key", key)
            write_private(nats / "tls.crt", certificate)
            lines.append(f"{nats / 'tls.crt'}: issued for {', '.join(hosts)}; reload nats-server")
        for name in ("nats", *self.identities):
            self._copy(authority.certificate_file, self._directory(name) / "ca.crt")
        return lines

    def _write_nats_keys(self) -> list[str]:
        directory = self._directory("nats-keys")
        changes = write_keys(directory, KeyChanges(), self.pools)
        lines = [line for line in changes if line.endswith("created")]
        keys = KeyDirectory(directory)
        self._copy(keys.config, self._directory("nats") / "auth.conf")
        for name in self.identities:
            self._copy(keys.seed_file(name), self._directory(name) / "nkey")
        return lines

    def _write_passwords(self) -> list[str]:
        passwords = PostgresPasswords(self._directory("postgres-passwords"))
        lines = []
        for role, readers in ROLE_READERS.items():
            if not passwords.has(role):
                passwords.store(role, generate_password())
                lines.append(f"{passwords.file(role)}: created")
            for reader in readers:
                self._copy(passwords.file(role), self._directory(reader) / f"{role}.pgpass")
                address = f"postgresql://{role}:{passwords.ensure(role)}@{self.database}"
                self._write(self._directory(reader) / f"{role}.dsn", address)
        self._write(self._directory("postgres") / "password", passwords.ensure(ADMIN))
        return lines

    def _write_first_key(self) -> list[str]:
        """One key of an administrator, so that somebody can make the others."""
        keys, path = self.keys_file, self._directory("operator") / "key"
        self._directory("gateway")
        lines = []
        if not keys.exists():
            key, entry = mint_key(("admin",), name="the first key of this deployment")
            write_private(path, f"{key}\n")
            add_key(keys, entry)
            lines.append(f"{path}: created; the key of an administrator for HTTP")
        self.copy_keys()
        return lines

    def copy_keys(self) -> None:
        """Give hooks the digests of the gateway: a key that does not count starts no run of a schedule."""
        self._copy(self.keys_file, self._directory("hooks") / KEYS_FILE)

    def _write_cookie_key(self) -> list[str]:
        """Every gateway opens the cookies of the console that another one sealed."""
        path = self._directory("gateway") / "cookie.key"
        if path.exists():
            return []
        write_private(path, f"{b64encode(token_bytes(COOKIE_KEY_BYTES)).decode()}\n")
        return [f"{path}: created"]

    def _directory(self, name: str) -> Path:
        directory = self.root / name
        make_private_directory(directory)
        return directory

    def _copy(self, source: Path, target: Path) -> None:
        self._write(target, source.read_text())

    @staticmethod
    def _write(target: Path, text: str) -> None:
        """Write a secret that changed. Its reader sees the old file or the new one."""
        if not target.exists() or target.read_text() != text:
            write_private(target, text)
