"""The pools of tool workers, and the rules that give each session its pool."""

import os.path
from collections.abc import Iterable

from pydantic import field_validator

from fairlead_schema.ids import TenantId
from fairlead_schema.tools.pool_rules import DEFAULT_POOL, PoolName, PoolRule, PoolRules
from fairlead_service.config.section import Directory, Section


class PoolConfig(Section):
    """One rule: sessions of these tenants in these directories belong to the pool `name`."""

    name: PoolName
    tenants: tuple[TenantId, ...] | None = None
    directories: tuple[Directory, ...] | None = None

    @field_validator("tenants", "directories")
    @classmethod
    def _not_empty(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value == ():
            raise ValueError("an empty list matches nothing: leave the key out to match all")
        return value


def build_rules(sections: Iterable[PoolConfig], worker: str) -> PoolRules:
    """The rules of a configuration, with links followed on this machine. Raises ValueError.

    A last rule that matches all names the default pool. Without rules there is one pool: that of the
    workers.
    """
    rules = tuple(_rule(section) for section in sections)
    if not rules:
        return PoolRules(default=worker)
    last = rules[-1]
    matches_all = not last.tenants and not last.directories
    pools = PoolRules(rules, last.pool if matches_all else DEFAULT_POOL)
    hidden = pools.find_hidden()
    if hidden is not None:
        raise ValueError(
            f"rule {hidden.rule} ({rules[hidden.rule - 1].pool}) is never used: rule {hidden.earlier}"
            f" ({rules[hidden.earlier - 1].pool}) matches all that it matches. The first match wins,"
            " so write the narrower rule first"
        )
    return pools


def check_worker(pools: PoolRules, worker: str) -> None:
    """Refuse a worker of a pool that nobody routes to. Raises ValueError."""
    if worker not in pools.names:
        known = ", ".join(pools.names)
        raise ValueError(f"tools.pool {worker!r} is no pool; the pools are {known}")


def _rule(section: PoolConfig) -> PoolRule:
    directories = tuple(os.path.realpath(path) for path in section.directories or ())
    return PoolRule(section.name, section.tenants or (), directories)
