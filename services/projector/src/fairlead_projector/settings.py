"""The settings of the projector."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from fairlead_projector.sweep import TenantBudgets
from fairlead_service.config.configuration import Config


class ProjectorSettings(BaseModel):
    """One frozen value. The configuration has validated its parts."""

    model_config = ConfigDict(frozen=True)

    nats_url: str
    request_timeout_s: float
    postgres_dsn: str
    host: str
    port: int
    batch_commits_max: int
    sweep_interval_s: float
    sweep_age_s: float
    tenant_budgets: TenantBudgets = TenantBudgets()
    asks_interval_s: float = 1.0
    expire_s: float | None = None

    @classmethod
    def of(cls, config: Config) -> Self:
        """The projector's part of the configuration."""
        return cls(
            nats_url=config.nats.url,
            request_timeout_s=config.nats.request_timeout_s,
            postgres_dsn=config.postgres.dsn,
            host=config.health.host,
            port=config.health.port,
            batch_commits_max=config.projector.batch_commits_max,
            sweep_interval_s=config.projector.sweep_interval_s,
            sweep_age_s=config.projector.sweep_age_s,
            tenant_budgets=TenantBudgets(
                tuple(config.tenant),
                tuple(limits.cost for limits in config.tenant.values()),
                tuple(limits.tokens for limits in config.tenant.values()),
            ),
            asks_interval_s=config.projector.asks_interval_s,
            expire_s=config.asks.expire_s,
        )
