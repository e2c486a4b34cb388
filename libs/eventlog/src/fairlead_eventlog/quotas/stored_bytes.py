"""The bytes of stored outputs: of a whole tenant, and of each of its principals."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId

_MARK_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """What the outputs of a tenant take. An output without a mark counts for the tenant alone."""

    total: int = 0
    marked: Mapping[str, int] = field(default_factory=dict)
    """The bytes of each principal, by its mark."""

    def of(self, principal: PrincipalName | None) -> int:
        """The bytes of one principal, or with None those of the whole tenant."""
        return self.total if principal is None else self.marked.get(principal_mark(principal), 0)

    def plus(self, principal: PrincipalName | None, size: int) -> "StoredBytes":
        """These bytes and those of one more output."""
        if principal is None:
            return StoredBytes(self.total + size, self.marked)
        marked = {**self.marked, principal_mark(principal): self.of(principal) + size}
        return StoredBytes(self.total + size, marked)


class CountsBytes(Protocol):
    """A store that knows how much each tenant keeps in it."""

    async def stored_bytes(self, tenant: TenantId) -> StoredBytes:
        """The bytes of a tenant. Raises LogUnavailable, StreamMissing."""


class JoinedStores:
    """Several stores that one quota covers: managed outputs and attachments."""

    def __init__(self, *stores: CountsBytes) -> None:
        self._stores = stores

    async def stored_bytes(self, tenant: TenantId) -> StoredBytes:
        """The bytes of a tenant in all stores. Raises LogUnavailable, StreamMissing."""
        total, marked = 0, Counter[str]()
        for store in self._stores:
            stored = await store.stored_bytes(tenant)
            total += stored.total
            marked.update(stored.marked)
        return StoredBytes(total, marked)


def principal_mark(principal: PrincipalName) -> str:
    """A short text for a principal that fits into a subject, as the name itself does not."""
    return sha256(principal.encode(errors="backslashreplace")).hexdigest()[:_MARK_DIGITS]
