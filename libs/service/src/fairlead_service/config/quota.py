"""The sections of quotas, and which quotas hold for a tenant and for each of its principals."""

from typing import Final

from pydantic import Field

from fairlead_schema.commands.quota import QuotaLimits
from fairlead_service.config.section import Section

GIB: Final = 1024**3


class PrincipalQuotaConfig(Section):
    """How much the sessions that one principal created may have. Zero means no limit."""

    sessions: int = Field(default=0, ge=0)
    log_bytes: int = Field(default=0, ge=0)
    output_bytes: int = Field(default=0, ge=0)
    turns: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)
    pending: int = Field(default=0, ge=0)


class QuotaConfig(Section):
    """How much each tenant may have. Zero means no limit."""

    sessions: int = Field(default=100_000, ge=0)
    log_bytes: int = Field(default=50 * GIB, ge=0)
    output_bytes: int = Field(default=10 * GIB, ge=0)
    turns: int = Field(default=1_000, ge=0)
    calls: int = Field(default=2_000, ge=0)
    pending: int = Field(default=100_000, ge=0)
    principal: PrincipalQuotaConfig = PrincipalQuotaConfig()


class TenantPrincipalQuotaConfig(Section):
    """The quotas of each principal of one tenant. `[quota.principal]` holds for those absent."""

    sessions: int | None = Field(default=None, ge=0)
    log_bytes: int | None = Field(default=None, ge=0)
    output_bytes: int | None = Field(default=None, ge=0)
    turns: int | None = Field(default=None, ge=0)
    calls: int | None = Field(default=None, ge=0)
    pending: int | None = Field(default=None, ge=0)


class TenantQuotaConfig(Section):
    """The quotas of one tenant. `[quota]` holds for those that are absent."""

    sessions: int | None = Field(default=None, ge=0)
    log_bytes: int | None = Field(default=None, ge=0)
    output_bytes: int | None = Field(default=None, ge=0)
    turns: int | None = Field(default=None, ge=0)
    calls: int | None = Field(default=None, ge=0)
    pending: int | None = Field(default=None, ge=0)
    principal: TenantPrincipalQuotaConfig = TenantPrincipalQuotaConfig()


def choose_limits(shared: Section, own: Section) -> QuotaLimits:
    """The limits of a tenant or its principals: its own, else the shared. Zero means no limit."""
    chosen = shared.model_dump() | own.model_dump(exclude_none=True)
    chosen.pop("principal", None)
    return QuotaLimits.model_validate({name: limit or None for name, limit in chosen.items()})
