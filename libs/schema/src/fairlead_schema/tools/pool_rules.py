"""Which pool of workers serves a location: ordered rules, and the first match wins. Pure.

Paths are real paths: who asks follows the links before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import StringConstraints

from fairlead_schema.ids import TenantId

DEFAULT_POOL: Final = "default"
POOL_LEVEL: Final = 2
"""The level of the log's format in which a session may name its pool."""

PoolName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,32}$")]
"""One token of a subject, and a part of the name of a consumer."""


def worker_identity(pool: str) -> str:
    """The name of the key of the workers of a pool other than the default one."""
    return f"tools-{pool}"


@dataclass(frozen=True, slots=True)
class PoolRule:
    """Sessions of these tenants in these directories belong to the pool. An empty list means all."""

    pool: str
    tenants: tuple[TenantId, ...] = ()
    directories: tuple[str, ...] = ()

    def matches(self, tenant: TenantId, directory: str) -> bool:
        """Whether the rule speaks of a tenant's session in a directory."""
        if self.tenants and tenant not in self.tenants:
            return False
        return not self.directories or any(_holds(above, directory) for above in self.directories)

    def covers(self, other: "PoolRule") -> bool:
        """Whether each session that the other rule matches is matched by this one."""
        tenants = not self.tenants or (other.tenants and set(other.tenants) <= set(self.tenants))
        return bool(tenants) and (
            not self.directories
            or (
                bool(other.directories)
                and all(
                    any(_holds(a, below) for a in self.directories) for below in other.directories
                )
            )
        )


class HiddenRule(NamedTuple):
    """A rule that never decides, because an earlier one matches all that it matches. Counted from 1."""

    rule: int
    earlier: int


@dataclass(frozen=True, slots=True)
class PoolRules:
    """The rules in order. What no rule matches belongs to the default pool."""

    rules: tuple[PoolRule, ...] = ()
    default: str = DEFAULT_POOL

    @property
    def names(self) -> tuple[str, ...]:
        """Every pool once, the default pool included."""
        return tuple(dict.fromkeys((*(rule.pool for rule in self.rules), self.default)))

    def identity(self, pool: str) -> str:
        """The name of the key with which the workers of a pool connect."""
        return "tools" if pool == self.default else worker_identity(pool)

    @property
    def others(self) -> tuple[str, ...]:
        """Every pool but the default one."""
        return tuple(name for name in self.names if name != self.default)

    def tenants_of(self, pool: str) -> tuple[TenantId, ...]:
        """The tenants of a pool that serves these alone; empty for a pool that serves any tenant."""
        rules = [rule for rule in self.rules if rule.pool == pool]
        if pool == self.default or not all(rule.tenants for rule in rules):
            return ()
        return tuple(dict.fromkeys(tenant for rule in rules for tenant in rule.tenants))

    def choose(self, tenant: TenantId, directory: str) -> str:
        """The pool of a tenant's session in a directory."""
        return next(self._matches(tenant, directory), PoolRule(self.default)).pool

    def find_permitted(self, tenant: TenantId, directory: str) -> tuple[str, ...]:
        """Every pool to which such a session may be moved, the chosen one first.

        A rule that names tenants binds them: their sessions use no pool of another rule.
        """
        matches = tuple(self._matches(tenant, directory))
        bound = tuple(rule.pool for rule in matches if rule.tenants)
        pools = bound or (*(rule.pool for rule in matches), self.default)
        return tuple(dict.fromkeys((self.choose(tenant, directory), *pools)))

    def find_hidden(self) -> HiddenRule | None:
        """The first rule that can never decide; None if each can."""
        for place, rule in enumerate(self.rules):
            for earlier, above in enumerate(self.rules[:place]):
                if above.covers(rule):
                    return HiddenRule(place + 1, earlier + 1)
        return None

    def _matches(self, tenant: TenantId, directory: str) -> Iterator[PoolRule]:
        return (rule for rule in self.rules if rule.matches(tenant, directory))


ONE_POOL: Final = PoolRules()
"""Without rules every session belongs to the default pool."""


def _holds(above: str, directory: str) -> bool:
    return above in {"/", directory} or directory.startswith(f"{above}/")
