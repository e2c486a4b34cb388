"""The settings of the gateway: one frozen value, read once from the configuration."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairlead_gateway.http.origin_rules import OriginRules
from fairlead_gateway.http.principal_limits import LimitSettings
from fairlead_schema.commands.location_catalog import CommandInfo, ReferenceInfo, SkillInfo
from fairlead_schema.commands.quota import QuotaLimits
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import TenantId
from fairlead_schema.session_info import SessionInfo
from fairlead_service.config.agents import AgentConfig
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.command_catalog import list_commands, list_references
from fairlead_service.config.configuration import Config, ConfigError
from fairlead_service.config.providers import ProviderConfig
from fairlead_service.identity.authenticator import HOW_TO_CONFIGURE
from fairlead_service.identity.loopback import is_loopback


class GatewaySettings(BaseModel):
    """Everything the gateway needs to know before it starts."""

    model_config = ConfigDict(frozen=True)

    host: str = "127.0.0.1"
    port: int = 8420
    nats: NatsAddress = NatsAddress("nats://127.0.0.1:4222")
    dsn: str = ""
    log_level: str = "INFO"
    request_timeout_s: float = Field(default=5.0, gt=0)
    # How long the hooks service waits for a receiver.
    hook_timeout_s: float = Field(default=10.0, gt=0)
    body_bytes_max: int = Field(default=1024 * 1024, gt=0)
    # The largest export that is kept in a temporary file while it is verified.
    import_bytes_max: int = Field(default=1024**3, gt=0)
    attachment_bytes_max: int = Field(default=20 * 1024 * 1024, gt=0)
    fresh_timeout_s: float = Field(default=2.0, ge=0)
    heartbeat_s: float = Field(default=15.0, gt=0)
    # The gateway drops a client that reads nothing for this long.
    stall_s: float = Field(default=30.0, gt=0)
    stream_frames_max: int = Field(default=256, gt=0)
    grace_s: float = Field(default=10.0, gt=0)
    read_timeout_s: float = Field(default=5.0, gt=0)
    pool_connections_max: int = Field(default=8, gt=0)
    # The bytes that may wait for one slow client.
    stream_bytes_max: int = Field(default=16 * 1024 * 1024, gt=0)
    head_timeout_s: float = Field(default=10.0, gt=0)
    head_bytes_max: int = Field(default=32 * 1024, gt=0)
    body_timeout_s: float = Field(default=30.0, gt=0)
    connections_max: int = Field(default=2048, gt=0)
    ops_host: str = "127.0.0.1"
    ops_port: int = 9100
    origin_rules: OriginRules = OriginRules()
    limits: LimitSettings = LimitSettings()
    auth: AuthConfig = AuthConfig()
    metrics_url: str = ""
    ask_expire_s: float | None = None
    """After how long an ask is rejected by itself."""
    directory: str = "/"
    default_location: Callable[[TenantId], str | None] = lambda _tenant: None
    agents: dict[str, AgentConfig] = Field(default_factory=dict)
    providers: dict[str, ProviderConfig] = Field(default_factory=dict)
    list_commands: Callable[[tuple[SkillInfo, ...]], tuple[CommandInfo, ...]] = lambda _skills: ()
    references: tuple[ReferenceInfo, ...] = ()
    with_defaults: Callable[[SessionInfo], SessionInfo] = lambda info: info
    """Names the agent and the model of a session that names none."""
    quotas: Callable[[TenantId], QuotaLimits] = lambda _tenant: QuotaLimits()
    principal_quotas: Callable[[TenantId], QuotaLimits] = lambda _tenant: QuotaLimits()

    @model_validator(mode="after")
    def _check_fresh_timeout(self) -> Self:
        if self.fresh_timeout_s > 60:  # noqa: PLR2004 - clients and proxies give up at a minute
            raise ValueError("fresh_timeout_s must be at most 60")
        return self

    @property
    def query_tokens(self) -> bool:
        """Whether a token may stand in the query string."""
        return self.auth.query_tokens

    @classmethod
    def of(cls, config: Config) -> Self:
        """The gateway's part of the whole configuration. Raises ConfigError for an open door."""
        gateway = config.gateway
        if config.auth.mode == "open" and not is_loopback(gateway.host):
            reason = f"{gateway.host} is reachable from outside: {HOW_TO_CONFIGURE}"
            raise ConfigError("auth", "mode", f'"open" serves loopback only, and {reason}')
        return cls(
            host=gateway.host,
            port=gateway.port,
            ops_host=config.health.host,
            ops_port=config.health.port,
            auth=config.auth,
            origin_rules=OriginRules(
                frozenset(host.lower() for host in gateway.hosts),
                frozenset(origin.lower() for origin in gateway.origins),
            ),
            limits=LimitSettings(
                gateway.requests_per_s,
                gateway.request_burst,
                gateway.bytes_per_minute,
                gateway.streams_max,
            ),
            attachment_bytes_max=config.ingest.attachment_bytes_max,
            head_timeout_s=gateway.head_timeout_s,
            head_bytes_max=gateway.head_bytes_max,
            body_timeout_s=gateway.body_timeout_s,
            connections_max=gateway.connections_max,
            stream_bytes_max=gateway.stream_bytes_max,
            nats=config.nats.address("gateway"),
            dsn=config.postgres.dsn,
            log_level=config.log.level,
            request_timeout_s=config.nats.request_timeout_s,
            hook_timeout_s=config.hooks.timeout_s,
            body_bytes_max=gateway.body_bytes_max,
            import_bytes_max=gateway.import_bytes_max,
            fresh_timeout_s=gateway.fresh_timeout_s,
            heartbeat_s=gateway.heartbeat_s,
            metrics_url=gateway.metrics_url,
            ask_expire_s=config.asks.expire_s,
            directory=config.location.default or str(Path.cwd()),
            default_location=config.default_location,
            agents=config.agents,
            providers=config.provider,
            list_commands=partial(list_commands, config),
            references=list_references(config),
            with_defaults=config.with_defaults,
            quotas=config.quotas,
            principal_quotas=config.principal_quotas,
        )
