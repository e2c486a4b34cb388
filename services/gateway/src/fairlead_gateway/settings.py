"""The settings of the gateway: one frozen value, read once from the configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairlead_schema.commands.quota import QuotaLimits
from fairlead_schema.ids import TenantId
from fairlead_service.config.agents import AgentConfig
from fairlead_service.config.configuration import Config
from fairlead_service.config.providers import ProviderConfig


class GatewaySettings(BaseModel):
    """Everything the gateway needs to know before it starts."""

    model_config = ConfigDict(frozen=True)

    host: str = "127.0.0.1"
    port: int = 8420
    nats_url: str = "nats://127.0.0.1:4222"
    dsn: str = ""
    log_level: str = "INFO"
    request_timeout_s: float = Field(default=5.0, gt=0)
    body_bytes_max: int = Field(default=1024 * 1024, gt=0)
    fresh_timeout_s: float = Field(default=2.0, ge=0)
    heartbeat_s: float = Field(default=15.0, gt=0)
    # The gateway drops a client that reads nothing for this long.
    stall_s: float = Field(default=30.0, gt=0)
    stream_frames_max: int = Field(default=256, gt=0)
    grace_s: float = Field(default=10.0, gt=0)
    read_timeout_s: float = Field(default=5.0, gt=0)
    pool_connections_max: int = Field(default=8, gt=0)
    directory: str = "/"
    agents: dict[str, AgentConfig] = Field(default_factory=dict)
    providers: dict[str, ProviderConfig] = Field(default_factory=dict)
    quotas: Callable[[TenantId], QuotaLimits] = lambda _tenant: QuotaLimits()

    @model_validator(mode="after")
    def _check_fresh_timeout(self) -> Self:
        if self.fresh_timeout_s > 60:  # noqa: PLR2004 - clients and proxies give up at a minute
            raise ValueError("fresh_timeout_s must be at most 60")
        return self

    @classmethod
    def of(cls, config: Config) -> Self:
        """The gateway's part of the whole configuration."""
        return cls(
            host=config.gateway.host,
            port=config.gateway.port,
            nats_url=config.nats.url,
            dsn=config.postgres.dsn,
            log_level=config.log.level,
            request_timeout_s=config.nats.request_timeout_s,
            body_bytes_max=config.gateway.body_bytes_max,
            fresh_timeout_s=config.gateway.fresh_timeout_s,
            heartbeat_s=config.gateway.heartbeat_s,
            directory=config.location.default or str(Path.cwd()),
            agents=config.agents,
            providers=config.provider,
            quotas=config.quotas,
        )
