"""A directory with the nkey seed of each identity and the server configuration with their grants."""

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nkeys

from fairlead_eventlog.errors import CredentialsUnusable
from fairlead_eventlog.grants.server_config import render
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES, ServiceIdentity
from fairlead_eventlog.grants.tenants import principal_inbox, principal_key
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import Principal

CONFIG: Final = "auth.conf"
SEED_SUFFIX: Final = ".nk"
SEED_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class KeyDirectory:
    """Seeds and configuration. Only the owner of the directory may read them."""

    root: Path

    @property
    def config(self) -> Path:
        """The file that nats-server includes."""
        return self.root / CONFIG

    def seed_file(self, name: str) -> Path:
        """The seed of an identity or a principal."""
        return self.root / f"{name.replace(':', '-')}{SEED_SUFFIX}"

    def service_address(self, url: str, identity: ServiceIdentity) -> NatsAddress:
        """The address of a service that connects with its own key."""
        seed = str(self.seed_file(identity))
        return NatsAddress(url, nkey_file=seed).for_identity(identity)

    def principal_address(self, url: str, principal: Principal) -> NatsAddress:
        """The address of a tenant's own client that connects with its own key."""
        seed, inbox = str(self.seed_file(principal_key(principal))), principal_inbox(principal)
        return NatsAddress(url, nkey_file=seed, inbox_prefix=inbox)

    def write(self, principals: Iterable[Principal]) -> list[str]:
        """Make the missing seeds and write the configuration anew. The answer names the new seeds.

        Raises CredentialsUnusable for a seed file that holds no seed.
        """
        members = tuple(principals)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        names = (*SERVICE_IDENTITIES, *(principal_key(principal) for principal in members))
        created = [name for name in names if not self.seed_file(name).exists()]
        for name in created:
            _write_private(self.seed_file(name), _new_seed())
        keys = {name: self._public_key(name) for name in names}
        _write_private(self.config, render(keys, members).encode())
        return created

    def _public_key(self, name: str) -> str:
        path = self.seed_file(name)
        try:
            pair = nkeys.from_seed(bytearray(path.read_bytes().strip()))
        except (nkeys.NkeysError, ValueError, OSError) as error:
            reason = "not an nkey seed; move the file away to get a new one"
            raise CredentialsUnusable("the key file", str(path), reason) from error
        public: bytes = pair.public_key
        return public.decode()


def _new_seed() -> bytes:
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(SEED_BYTES), nkeys.PREFIX_BYTE_USER)
    return seed


def _write_private(path: Path, content: bytes) -> None:
    """Write a file in one step that only its owner may read."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
