"""Principals: the callers on whose behalf Fairlead acts."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from pydantic import StringConstraints

from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.identity.scopes import SCOPES, Scope
from fairlead_schema.ids import DEFAULT_TENANT, TenantId

PRINCIPAL_LENGTH_MAX: Final = 256

PrincipalName: TypeAlias = Annotated[
    str,
    StringConstraints(
        pattern=r"^(local|(key|service):[A-Za-z0-9_-]{1,64}|user:[^\s\x00-\x1f]+)$",
        max_length=PRINCIPAL_LENGTH_MAX,
    ),
]
"""`local`, `key:<id>`, `service:<name>` or `user:<issuer>/<subject>`. Commits hold it as `by`."""


def counted_principal(name: str | None) -> PrincipalName | None:
    """The principal for which a session counts, from the `by` of its first commit.

    A name that is too long for an index counts as none: one log must not stop the others.
    """
    return name if name and len(name) <= PRINCIPAL_LENGTH_MAX else None


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller with one tenant and a set of scopes. None for a restriction means no restriction."""

    name: PrincipalName
    tenant: TenantId
    scopes: frozenset[Scope]
    roots: tuple[str, ...] | None = None
    """The locations that the sessions of this principal may have, inside those of its tenant."""
    agents: tuple[str, ...] | None = None
    """The agents that the sessions of this principal may use."""
    cost: float | None = None
    """The largest budget of a session of this principal, in USD."""
    expires_at: int | None = None
    """Milliseconds since the epoch. Streams end then."""

    @property
    def restrictions(self) -> Restrictions | None:
        """What the sessions of this principal may use; None if nothing restricts them."""
        if self.roots is None and self.agents is None and self.cost is None:
            return None
        return Restrictions(roots=self.roots, agents=self.agents, cost=self.cost)

    def may(self, scope: Scope) -> bool:
        """Whether the principal has a scope."""
        return scope in self.scopes


LOCAL: Final = Principal("local", DEFAULT_TENANT, frozenset(SCOPES))
"""The caller of a stack that serves this machine without tokens."""
