"""The principals with NATS keys: as options name them, and as a file beside the keys keeps them."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator

from fairlead_cli.errors import UsageError
from fairlead_eventlog.grants.key_directory import write_private
from fairlead_eventlog.grants.tenants import principal_key
from fairlead_schema.identity.principal import Principal, PrincipalName
from fairlead_schema.identity.scopes import UnknownScope, scopes_of
from fairlead_schema.ids import TenantId
from fairlead_service.identity.keys import KeyEntry, parse_keys

FILE: Final = "principals.json"


class PrincipalGrant(BaseModel):
    """A tenant's own client and its roles. The scopes of a role may change with a release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PrincipalName
    tenant: TenantId
    roles: tuple[str, ...]

    @field_validator("name")
    @classmethod
    def _refuse_users(cls, name: str) -> str:
        if name.startswith("user:"):
            raise ValueError("users have no NATS key, name a key or a service")
        return name

    def principal(self) -> Principal:
        return Principal(self.name, self.tenant, scopes_of(self.roles))


_GRANTS: Final = TypeAdapter(tuple[PrincipalGrant, ...])


def load(directory: Path) -> dict[str, PrincipalGrant]:
    """The principals that earlier commands named, by the name of their key. Raises UsageError."""
    path = directory / FILE
    if not path.exists():
        return {}
    try:
        grants = _GRANTS.validate_json(path.read_bytes())
        return {principal_key(grant.principal()): grant for grant in grants}
    except ValidationError as error:
        raise _unreadable(path, error.errors()[0]["msg"]) from error
    except UnknownScope as error:
        raise _unreadable(path, str(error)) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or "unreadable") from error


def save(directory: Path, grants: dict[str, PrincipalGrant]) -> None:
    """Keep the principals for the next command."""
    records = [grant.model_dump() for _, grant in sorted(grants.items())]
    write_private(directory / FILE, f"{json.dumps(records, indent=2)}\n".encode())


def change(
    known: dict[str, PrincipalGrant], added: Iterable[str], removed: Iterable[str]
) -> dict[str, PrincipalGrant]:
    """The known principals with the added ones and without the removed ones. Raises UsageError."""
    wanted = dict(known)
    for text in added:
        grant = parse(text)
        wanted[principal_key(grant.principal())] = grant
    for text in removed:
        if wanted.pop(key_name(text), None) is None:
            raise UsageError(f"--without {text}: no such principal, write it as NAME:TENANT")
    return wanted


def key_name(text: str) -> str:
    """The name of the key of a service, or of a principal that is written as NAME:TENANT."""
    name, colon, tenant = text.rpartition(":")
    return f"{tenant}.{name}" if colon else text


def follow_keys_file(
    known: dict[str, PrincipalGrant], path: Path, *, now: datetime
) -> tuple[dict[str, PrincipalGrant], list[str]]:
    """The known principals with exactly the keys of a keys file of HTTP, and what was left out.

    Raises UsageError.
    """
    try:
        entries = parse_keys(path.read_text()).keys
    except OSError as error:
        raise UsageError(f"--keys {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"--keys {path} is no keys file: {error}") from error
    wanted = {name: grant for name, grant in known.items() if not grant.name.startswith("key:")}
    left_out: list[str] = []
    for entry in entries:
        limits = _limits(entry)
        if entry.revoked is not None or (entry.expires is not None and entry.expires <= now):
            continue
        if limits:
            left_out.append(f"key:{entry.id}: left out, NATS cannot enforce its {limits}")
            continue
        grant = PrincipalGrant(name=f"key:{entry.id}", tenant=entry.tenant, roles=entry.roles)
        wanted[principal_key(grant.principal())] = grant
    return wanted, left_out


def _limits(entry: KeyEntry) -> str:
    """The restrictions of a key that a static user of NATS would not have."""
    fields = {
        "roots": entry.roots,
        "agents": entry.agents,
        "cost": entry.cost,
        "expiry": entry.expires,
    }
    return ", ".join(name for name, value in fields.items() if value is not None)


def parse(text: str) -> PrincipalGrant:
    """One principal, such as `service:billing:acme:service,viewer`. Raises UsageError."""
    form = "write it as NAME:TENANT:ROLES, for example service:billing:acme:service"
    parts = text.rsplit(":", 2)
    if len(parts) != 3:  # noqa: PLR2004 - name, tenant and roles
        raise UsageError(f"--principal {text}: {form}")
    name, tenant, roles = parts
    if name.startswith("user:"):
        raise UsageError(f"--principal {text}: users have no NATS key, name a key or a service")
    try:
        grant = PrincipalGrant(name=name, tenant=tenant, roles=tuple(roles.split(",")))
        grant.principal()
    except ValidationError as error:
        raise UsageError(f"--principal {text}: {form}") from error
    except UnknownScope as error:
        raise UsageError(f"--principal {text}: {error}") from error
    return grant


def _unreadable(path: Path, reason: str) -> UsageError:
    advice = "correct the file, or delete it and name every principal again"
    return UsageError(f"{path} cannot be read: {reason}; {advice}")
