"""The principals with NATS keys: as options name them, and as a file beside the keys keeps them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fairlead_cli.errors import UsageError
from fairlead_eventlog.grants.tenants import principal_key
from fairlead_schema.identity.principal import Principal, PrincipalName
from fairlead_schema.identity.scopes import UnknownScope, scopes_of
from fairlead_schema.ids import TenantId

FILE: Final = "principals.json"


class PrincipalGrant(BaseModel):
    """A tenant's own client and its roles. The scopes of a role may change with a release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PrincipalName
    tenant: TenantId
    roles: tuple[str, ...]

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
    except ValidationError as error:
        raise UsageError(f"{path} cannot be read: {error.errors()[0]['msg']}") from error
    return {principal_key(grant.principal()): grant for grant in grants}


def save(directory: Path, grants: dict[str, PrincipalGrant]) -> None:
    """Keep the principals for the next command."""
    records = [grant.model_dump() for _, grant in sorted(grants.items())]
    (directory / FILE).write_text(json.dumps(records, indent=2) + "\n")


def change(
    known: dict[str, PrincipalGrant], added: Iterable[str], removed: Iterable[str]
) -> dict[str, PrincipalGrant]:
    """The known principals with the added ones and without the removed ones. Raises UsageError."""
    wanted = dict(known)
    for text in added:
        grant = parse(text)
        wanted[principal_key(grant.principal())] = grant
    for text in removed:
        name, _, tenant = text.rpartition(":")
        if wanted.pop(f"{tenant}.{name}", None) is None:
            raise UsageError(f"--without {text}: no such principal, write it as NAME:TENANT")
    return wanted


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
