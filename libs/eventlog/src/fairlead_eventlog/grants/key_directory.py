"""A directory with the nkey seed of each identity and the server configuration with their grants."""

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import nkeys

from fairlead_eventlog.errors import CredentialsUnusable
from fairlead_eventlog.grants.callout import CALLOUT, ISSUER, CalloutIssuer, CalloutRules
from fairlead_eventlog.grants.server_config import render
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_eventlog.grants.tenants import principal_inbox, principal_key
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.pool_rules import ONE_POOL, PoolRules, worker_identity

CONFIG: Final = "auth.conf"
SEED_SUFFIX: Final = ".nk"
PREVIOUS_SUFFIX: Final = ".previous"
SEED_BYTES: Final = 32
USER_PREFIX: Final = "U"


@dataclass(frozen=True, slots=True)
class WrittenKeys:
    """What a writing of keys changed, by the names of identities and principals."""

    created: tuple[str, ...]
    exposed: tuple[str, ...]
    """Others could read these seeds until now."""


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

    def service_address(self, url: str, identity: str) -> NatsAddress:
        """The address of a service that connects with its own key."""
        seed = str(self.seed_file(identity))
        return NatsAddress(url, nkey_file=seed).for_identity(identity)

    def principal_address(self, url: str, principal: Principal) -> NatsAddress:
        """The address of a tenant's own client that connects with its own key."""
        seed, inbox = str(self.seed_file(principal_key(principal))), principal_inbox(principal)
        return NatsAddress(url, nkey_file=seed, inbox_prefix=inbox)

    def callout_issuer(self) -> CalloutIssuer:
        """The key that signs users for an auth callout. Raises CredentialsUnusable."""
        return CalloutIssuer(self.seed_file(ISSUER))

    def write(
        self,
        principals: Iterable[Principal],
        *,
        callout_tenants: tuple[TenantId, ...] | None = None,
        pools: PoolRules = ONE_POOL,
    ) -> WrittenKeys:
        """Make the missing seeds and write the configuration anew. Each pool has a key of its own.

        With `callout_tenants`, an auth callout may connect clients of these tenants. Raises
        CredentialsUnusable for a seed file that holds no seed, and for a directory that cannot be
        written.
        """
        members = tuple(principals)
        workers = map(worker_identity, pools.others)
        names = (*SERVICE_IDENTITIES, *workers, *(principal_key(member) for member in members))
        issuers = () if callout_tenants is None else (ISSUER,)
        if callout_tenants is not None:
            names = (*names, CALLOUT)
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(0o700)
            seeds = (*names, *issuers)
            created = [name for name in seeds if not self.seed_file(name).exists()]
            for name in created:
                write_private(self.seed_file(name), _new_seed(is_account=name in issuers))
            exposed = [name for name in seeds if _make_private(self.seed_file(name))]
            keys = {name: self._public_keys(name) for name in names}
            _refuse_shared(keys)
            rules = None
            if callout_tenants is not None:
                rules = CalloutRules(self.callout_issuer().public, callout_tenants)
            write_private(self.config, render(keys, members, rules, pools).encode())
        except OSError as error:
            raise self._unusable(error) from error
        return WrittenKeys(tuple(created), tuple(exposed))

    def rotate(self, name: str) -> None:
        """Begin to replace a key: the next writing makes a new seed, and grants both keys.

        Raises CredentialsUnusable.
        """
        previous = self._previous_file(name)
        if previous.exists():
            reason = "the key before it is still granted; retire that key first"
            raise CredentialsUnusable("the key file", str(self.seed_file(name)), reason)
        try:
            write_private(previous, self._public_key(name).encode())
            self.seed_file(name).unlink()
        except OSError as error:
            raise self._unusable(error) from error

    def retire(self, name: str) -> None:
        """End the rotation of a key: the next writing grants its new seed alone."""
        self._previous_file(name).unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Delete a key that nobody has any more."""
        self.seed_file(name).unlink(missing_ok=True)
        self.retire(name)

    def _previous_file(self, name: str) -> Path:
        """The public half of a key whose replacement is under way."""
        return self.seed_file(name).with_suffix(PREVIOUS_SUFFIX)

    def _public_keys(self, name: str) -> tuple[str, ...]:
        previous = self._previous_file(name)
        current = self._public_key(name)
        return (current, previous.read_text().strip()) if previous.exists() else (current,)

    def _public_key(self, name: str) -> str:
        path = self.seed_file(name)
        reason = "not the nkey seed of a user; move the file away to get a new one"
        try:
            pair = nkeys.from_seed(bytearray(path.read_bytes().strip()))
        except (nkeys.NkeysError, ValueError, OSError) as error:
            raise CredentialsUnusable("the key file", str(path), reason) from error
        public: str = pair.public_key.decode()
        if not public.startswith(USER_PREFIX):
            raise CredentialsUnusable("the key file", str(path), reason)
        return public

    def _unusable(self, error: OSError) -> CredentialsUnusable:
        reason = f"{error.strerror}: {error.filename}; choose a directory that you may write"
        return CredentialsUnusable("the key directory", str(self.root), reason)


def _new_seed(*, is_account: bool) -> bytes:
    prefix = nkeys.PREFIX_BYTE_ACCOUNT if is_account else nkeys.PREFIX_BYTE_USER
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(SEED_BYTES), prefix)
    return seed


def _make_private(path: Path) -> bool:
    """Let only the owner read a file. The answer is whether others could read it before."""
    if not path.stat().st_mode & 0o077:
        return False
    path.chmod(0o600)
    return True


def _refuse_shared(keys: Mapping[str, tuple[str, ...]]) -> None:
    owner: dict[str, str] = {}
    for name, public_keys in keys.items():
        for key in public_keys:
            if owner.setdefault(key, name) != name:
                reason = f"it is also the key of {owner[key]}; delete one of both files"
                raise CredentialsUnusable("the key of", name, reason)


def write_private(path: Path, content: bytes) -> None:
    """Write a file in one step that only its owner may read."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
