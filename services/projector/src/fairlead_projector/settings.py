"""The settings of the projector."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict

from fairlead_eventlog.ports import BATCH_BYTES
from fairlead_projector.projection.recent_sessions import CacheLimits
from fairlead_projector.sweep import TenantBudgets
from fairlead_schema.commands.quota import QuotaLimits
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config


@dataclass(frozen=True, slots=True)
class FeedTimings:
    """Pauses of a feed publisher. No operator needs to change others than `projector.feed_lag_s`."""

    linger_s: float = 0.1
    """Between two batches. Nobody waits for the feed, so events are published in batches."""
    advance_s: float = 1.0
    """Between two moves of the checkpoint."""
    safe_after_s: float = 60.0
    """After this time the server has surely persisted a message."""
    poll_s: float = 1.0
    """Between two looks at the checkpoint of another publisher."""
    take_over_s: float = 5.0
    """A publisher that has not moved its checkpoint for this long counts as gone."""


class ProjectorSettings(BaseModel):
    """One frozen value. The configuration has validated its parts."""

    model_config = ConfigDict(frozen=True)

    nats: NatsAddress
    request_timeout_s: float
    postgres_dsn: str
    host: str
    port: int
    batch_commits_max: int
    batch_bytes_max: int = BATCH_BYTES
    cache: CacheLimits = CacheLimits()
    sweep_interval_s: float
    sweep_age_s: float
    tenant_budgets: TenantBudgets = TenantBudgets()
    asks_interval_s: float = 1.0
    expire_s: float | None = None
    feed_timings: FeedTimings = FeedTimings()
    quotas: Callable[[TenantId], QuotaLimits] = lambda _tenant: QuotaLimits()
    principal_quotas: Callable[[TenantId], QuotaLimits] = lambda _tenant: QuotaLimits()

    @classmethod
    def of(cls, config: Config) -> Self:
        """The projector's part of the configuration."""
        return cls(
            nats=config.nats.address("projector"),
            request_timeout_s=config.nats.request_timeout_s,
            postgres_dsn=config.postgres.dsn,
            host=config.health.host,
            port=config.health.port,
            batch_commits_max=config.projector.batch_commits_max,
            batch_bytes_max=config.projector.batch_bytes_max,
            cache=CacheLimits(
                config.projector.cache_sessions_max, config.projector.cache_bytes_max
            ),
            sweep_interval_s=config.projector.sweep_interval_s,
            sweep_age_s=config.projector.sweep_age_s,
            tenant_budgets=TenantBudgets(
                tuple(config.tenant),
                tuple(limits.cost for limits in config.tenant.values()),
                tuple(limits.tokens for limits in config.tenant.values()),
            ),
            asks_interval_s=config.projector.asks_interval_s,
            expire_s=config.asks.expire_s,
            feed_timings=FeedTimings(safe_after_s=config.projector.feed_lag_s),
            quotas=config.quotas,
            principal_quotas=config.principal_quotas,
        )
