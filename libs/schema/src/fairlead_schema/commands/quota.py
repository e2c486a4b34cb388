"""Quotas: what a tenant or one principal has and uses, and how much of each it may have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model

QuotaName: TypeAlias = Literal["sessions", "log_bytes", "output_bytes", "turns", "calls", "pending"]
QUOTAS: Final[tuple[QuotaName, ...]] = get_args(QuotaName)
HolderKind: TypeAlias = Literal["tenant", "principal"]

# What a quota counts, and what a caller can do when it is reached.
_WORDS: Final[dict[QuotaName, tuple[str, str]]] = {
    "sessions": ("sessions", "delete sessions that nobody needs"),
    "log_bytes": ("bytes in the log", "delete sessions that nobody needs"),
    "output_bytes": ("bytes of stored outputs", "delete sessions, or wait until outputs expire"),
    "turns": ("running turns", "wait until a turn ends"),
    "calls": ("running tool calls", "wait until a call ends"),
    "pending": ("pending prompts", "wait until turns take some up, or cancel some"),
}


class QuotaHolder(NamedTuple):
    """Whose quota it is: that of one principal, or with None that of the whole tenant."""

    tenant: TenantId
    principal: PrincipalName | None = None

    @property
    def kind(self) -> HolderKind:
        return "tenant" if self.principal is None else "principal"


def quota_holders(tenant: TenantId, principal: PrincipalName | None) -> tuple[QuotaHolder, ...]:
    """Whose quota work needs: that of its tenant, and that of its principal if it has one."""
    whole = QuotaHolder(tenant)
    return (whole,) if principal is None else (whole, QuotaHolder(tenant, principal))


class AskTenantTotals(Model):
    """A request whose subject names the tenant."""

    principal: PrincipalName | None = None
    """Count only the sessions that this principal created. None counts all of the tenant."""


class QuotaLimits(Model):
    """How much of each a tenant or a principal may have. None means no limit."""

    sessions: int | None = None
    log_bytes: int | None = None
    output_bytes: int | None = None
    turns: int | None = None
    calls: int | None = None
    pending: int | None = None

    def limit(self, quota: QuotaName) -> int | None:
        """The limit of a quota; None if there is none."""
        limit: int | None = getattr(self, quota)
        return limit


UNLIMITED: Final = QuotaLimits()
LimitsOf: TypeAlias = Callable[[TenantId], QuotaLimits]


def _allow_all(_tenant: TenantId) -> QuotaLimits:
    return UNLIMITED


@dataclass(frozen=True, slots=True)
class QuotaPolicy:
    """How much every tenant may have, and each principal of a tenant inside of that."""

    tenant: LimitsOf = _allow_all
    principal: LimitsOf = _allow_all

    def limits(self, holder: QuotaHolder) -> QuotaLimits:
        """The limits of a tenant or of one of its principals."""
        return (self.tenant if holder.principal is None else self.principal)(holder.tenant)


ALLOW_ALL: Final = QuotaPolicy()


class TenantTotals(Model):
    """What all sessions of a tenant have and use now, and what they have cost so far.

    For a principal its own sessions are counted, and neither cost nor tokens.
    """

    principal: PrincipalName | None = None
    """The principal whose sessions are counted. None means all of the tenant."""
    cost: float = 0.0
    """In USD, with purged sessions: a purge gives nothing back."""
    tokens: int = 0
    sessions: int = 0
    """Sessions that exist, archived ones too. A purged session no longer counts."""
    log_bytes: int = 0
    output_bytes: int = 0
    turns: int = 0
    """Sessions that a runner drains."""
    calls: int = 0
    """Tool calls that a worker has started and nobody has settled."""
    pending: int = 0
    """Prompts that no turn has taken up."""
    allowed: QuotaLimits | None = None
    """The limits in the configuration of the projector."""

    def amount(self, quota: QuotaName) -> int:
        """How much of a quota is used."""
        return int(getattr(self, quota))


@dataclass(frozen=True, slots=True)
class QuotaReached:
    """A quota that allows no more."""

    quota: QuotaName
    used: int
    allowed: int
    holder: HolderKind = "tenant"

    @property
    def name(self) -> str:
        """The name of the quota as in `[quota]`: that of a principal begins with `principal.`."""
        return self.quota if self.holder == "tenant" else f"{self.holder}.{self.quota}"

    @property
    def sentence(self) -> str:
        """What is used and what is allowed."""
        return f"the {self.holder} has {self.used:,} of {self.allowed:,} {_WORDS[self.quota][0]}"

    @property
    def remedy(self) -> str:
        """What a caller and an operator can do."""
        section = "quota" if self.holder == "tenant" else "quota.principal"
        return f"{_WORDS[self.quota][1]}, or raise `{self.quota}` in [{section}]"


class QuotaUse(Model):
    """One quota: what is used, and what is allowed. No `allowed` means no limit."""

    quota: QuotaName
    used: int
    allowed: int | None = None


class PrincipalUsageReport(Model):
    """The quotas of one principal, which count the sessions that it created."""

    name: PrincipalName
    quotas: tuple[QuotaUse, ...]


class TenantUsageReport(Model):
    """All quotas of a tenant, and what its sessions have cost so far."""

    tenant: str
    quotas: tuple[QuotaUse, ...]
    cost: float
    tokens: int
    principal: PrincipalUsageReport | None = None
    """The share of the principal that asked."""
