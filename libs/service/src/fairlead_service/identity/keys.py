"""Static keys `flk_<id>_<secret>`. A keys file holds their SHA-256, never the keys themselves."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic import model_validator as validator

from fairlead_schema.errors import Unauthorized
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import scopes_of
from fairlead_schema.ids import DEFAULT_TENANT, TenantId

SECRET_BYTES: Final = 32
ID_BYTES: Final = 6
_KEY: Final = re.compile(r"flk_([A-Za-z0-9-]{1,64})_[A-Za-z0-9]{16,128}")
# An unknown id is compared with this digest, so that it costs the same work as a known one.
_NO_DIGEST: Final = "0" * 64


class KeyEntry(BaseModel):
    """One key of a keys file: the digest of the key, and what its holder may do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    tenant: TenantId = DEFAULT_TENANT
    roles: tuple[str, ...] = Field(min_length=1)
    """Roles and scopes."""
    name: Annotated[str, StringConstraints(max_length=256)] = ""
    roots: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    expires: AwareDatetime | None = None
    revoked: AwareDatetime | None = None

    @validator(mode="after")
    def _check_roles(self) -> Self:
        scopes_of(self.roles)
        return self

    @property
    def expires_at(self) -> int | None:
        """When the key ends, in milliseconds since the epoch."""
        return None if self.expires is None else int(self.expires.timestamp() * 1000)

    def principal(self) -> Principal:
        """The caller that holds this key."""
        return Principal(
            f"key:{self.id}",
            self.tenant,
            scopes_of(self.roles),
            self.roots,
            self.agents,
            self.cost,
            self.expires_at,
        )


class KeysDocument(BaseModel):
    """A keys file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[KeyEntry, ...] = ()

    @validator(mode="after")
    def _check_ids(self) -> Self:
        ids: set[str] = set()
        for entry in self.keys:
            if entry.id in ids:
                raise ValueError(f"the id {entry.id!r} stands twice")
            ids.add(entry.id)
        return self


@dataclass(frozen=True, slots=True)
class _Holder:
    """An entry with its principal, which is computed once for each version of the file."""

    entry: KeyEntry
    principal: Principal


class KeyRing:
    """The keys of one version of a keys file."""

    def __init__(self, entries: Sequence[KeyEntry]) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self._holders = {entry.id: _Holder(entry, entry.principal()) for entry in entries}

    def principal(self, key: str, *, now_ms: int) -> Principal:
        """The holder of a key. Raises Unauthorized."""
        match = _KEY.fullmatch(key)
        holder = None if match is None else self._holders.get(match[1])
        digest = _NO_DIGEST if holder is None else holder.entry.sha256
        is_same = hmac.compare_digest(digest_of(key), digest)
        if holder is None or not is_same:
            raise Unauthorized("The key is not known: ask for a new one")
        if holder.entry.revoked is not None:
            raise Unauthorized(f"The key {holder.entry.id} is revoked: ask for a new one")
        expires_at = holder.principal.expires_at
        if expires_at is not None and expires_at <= now_ms:
            raise Unauthorized(f"The key {holder.entry.id} is expired: ask for a new one")
        return holder.principal


def is_key(credential: str) -> bool:
    """Whether a credential is a static key and not another kind of token."""
    return credential.startswith("flk_")


def mint_key(  # noqa: PLR0913 - the fields of an entry
    roles: Sequence[str],
    *,
    tenant: TenantId = DEFAULT_TENANT,
    name: str = "",
    expires: datetime | None = None,
    roots: tuple[str, ...] | None = None,
    agents: tuple[str, ...] | None = None,
    cost: float | None = None,
) -> tuple[str, KeyEntry]:
    """A new key and its entry. Only the caller ever sees the key. Raises ValidationError."""
    id_ = secrets.token_hex(ID_BYTES)
    key = f"flk_{id_}_{secrets.token_hex(SECRET_BYTES)}"
    entry = KeyEntry(
        id=id_,
        sha256=digest_of(key),
        tenant=tenant,
        roles=tuple(roles),
        name=name,
        expires=expires,
        roots=roots,
        agents=agents,
        cost=cost,
    )
    return key, entry


def digest_of(key: str) -> str:
    """The digest that a keys file holds instead of the key."""
    return hashlib.sha256(key.encode()).hexdigest()


def parse_keys(text: str) -> KeysDocument:
    """Read the text of a keys file. Raises ValueError with the first wrong field."""
    try:
        return KeysDocument.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{field}: {first['msg']}" if field else first["msg"]) from None


def parse_key_ring(text: str) -> KeyRing:
    """The keys of a keys file, ready to be asked. Raises ValueError."""
    return KeyRing(parse_keys(text).keys)
