"""Quotas: what a tenant has and uses, and how much of each a tenant may have."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from fairlead_schema.model import Model

QuotaName: TypeAlias = Literal["sessions", "log_bytes", "output_bytes", "turns", "calls", "pending"]
QUOTAS: Final[tuple[QuotaName, ...]] = get_args(QuotaName)

# What a quota counts, and what a caller can do when it is reached.
_WORDS: Final[dict[QuotaName, tuple[str, str]]] = {
    "sessions": ("sessions", "delete sessions that nobody needs"),
    "log_bytes": ("bytes in the log", "delete sessions that nobody needs"),
    "output_bytes": ("bytes of stored outputs", "delete sessions, or wait until outputs expire"),
    "turns": ("running turns", "wait until a turn ends"),
    "calls": ("running tool calls", "wait until a call ends"),
    "pending": ("pending prompts", "wait until turns take some up, or cancel some"),
}


class AskTenantTotals(Model):
    """An empty request; its subject names the tenant."""


class QuotaLimits(Model):
    """How much of each a tenant may have. None means no limit."""

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


class TenantTotals(Model):
    """What all sessions of a tenant have and use now, and what they have cost so far."""

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

    @property
    def sentence(self) -> str:
        """What is used and what is allowed."""
        return f"the tenant has {self.used:,} of {self.allowed:,} {_WORDS[self.quota][0]}"

    @property
    def remedy(self) -> str:
        """What a caller and an operator can do."""
        return f"{_WORDS[self.quota][1]}, or raise `{self.quota}` in [quota]"


class QuotaUse(Model):
    """One quota of a tenant: what is used, and what is allowed. No `allowed` means no limit."""

    quota: QuotaName
    used: int
    allowed: int | None = None


class TenantUsageReport(Model):
    """All quotas of a tenant, and what its sessions have cost so far."""

    tenant: str
    quotas: tuple[QuotaUse, ...]
    cost: float
    tokens: int
