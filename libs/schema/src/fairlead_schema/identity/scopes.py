"""Scopes, and the roles that name sets of them."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

Scope: TypeAlias = Literal[
    "session:read",
    "session:write",
    "session:purge",
    "ask:reply",
    "approval:save",
    "tool:register",
    "source:register",
    "transform:register",
    "webhook:manage",
    "tenant:admin",
    "ops",
]
"""What a principal may do. `approval:save` is the answer "always" to a permission request.

`transform:register` is in no role but `admin`: a transform reads and changes whole requests. So is
`webhook:manage`: a webhook sends the events of all sessions of its tenant to an address outside.
"""

Role: TypeAlias = Literal["viewer", "user", "approver", "service", "admin"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ROLES: Final[dict[Role, frozenset[Scope]]] = {
    "viewer": frozenset({"session:read"}),
    "user": frozenset({"session:read", "session:write", "ask:reply"}),
    "approver": frozenset({"session:read", "ask:reply", "approval:save"}),
    "service": frozenset({"session:read", "session:write", "tool:register", "source:register"}),
    "admin": frozenset(SCOPES),
}


class UnknownScope(ValueError):
    """A name is neither a scope nor a role."""

    def __init__(self, name: str) -> None:
        names = ", ".join((*ROLES, *SCOPES))
        super().__init__(f"{name!r} is neither a role nor a scope: choose from {names}")
        self.name = name


def scopes_of(names: Iterable[str]) -> frozenset[Scope]:
    """The scopes that a list of roles and scopes grants. Raises UnknownScope."""
    granted: set[Scope] = set()
    for name in names:
        if name in ROLES:
            granted |= ROLES[name]
        elif name in SCOPES:
            granted.add(name)
        else:
            raise UnknownScope(name)
    return frozenset(granted)
