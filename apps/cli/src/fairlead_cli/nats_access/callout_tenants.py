"""The tenants whose clients may connect to NATS with the credentials of HTTP, in a file beside the keys."""

import json
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fairlead_cli.errors import UsageError
from fairlead_eventlog.grants.key_directory import write_private
from fairlead_schema.ids import TenantId

FILE: Final = "callout.json"

_TENANT: Final[TypeAdapter[str]] = TypeAdapter(TenantId)


class CalloutTenants(BaseModel):
    """The tenants whose clients the callout connects, as a file beside the keys keeps them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenants: tuple[TenantId, ...] = ()

    def add(self, names: tuple[str, ...]) -> "CalloutTenants":
        """Add tenants. Raises UsageError."""
        try:
            added = {_TENANT.validate_python(name) for name in names}
        except ValidationError as error:
            raise UsageError(f"--tenant: {error.errors()[0]['msg']}") from error
        return CalloutTenants(tenants=tuple(sorted({*self.tenants, *added})))


def load_tenants(directory: Path) -> CalloutTenants | None:
    """The tenants of earlier commands; None without a callout. Raises UsageError."""
    path = directory / FILE
    if not path.exists():
        return None
    try:
        return parse_tenants(path.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        advice = "correct the file, or delete it and name every tenant again"
        raise UsageError(f"{path} cannot be read: {error}; {advice}") from error


def parse_tenants(text: str) -> CalloutTenants:
    """Read the text of the file. Raises ValueError."""
    try:
        return CalloutTenants.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None


def save_tenants(directory: Path, tenants: CalloutTenants | None) -> None:
    """Keep the tenants for the next command and for the callout."""
    path = directory / FILE
    if tenants is None:
        path.unlink(missing_ok=True)
    else:
        write_private(path, f"{json.dumps(tenants.model_dump(), indent=2)}\n".encode())
