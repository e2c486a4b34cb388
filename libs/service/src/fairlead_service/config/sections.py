"""The sections of `fairlead.toml` that hold plain settings, one class each."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from fairlead_schema.identity.nats_address import INBOX_ROOT, NatsAddress
from fairlead_schema.tools.pool_rules import DEFAULT_POOL, PoolName
from fairlead_service.config.quota import TenantQuotaConfig
from fairlead_service.config.section import Directory, Names, Section, split_directories
from fairlead_service.config.tool_servers import Credentials, SearchServiceConfig


class NatsConfig(Section):
    """Where NATS is. A key or certificate is a file, so that no secret stands in an address."""

    url: str = Field(default="nats://127.0.0.1:4222", repr=False)
    nkey_file: str | None = None
    creds_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    inbox_prefix: str = Field(default=INBOX_ROOT, pattern=r"^_INBOX[A-Za-z0-9_:.-]*$")
    request_timeout_s: float = Field(default=5.0, gt=0)
    patience_s: float = Field(default=15.0, gt=0)
    replicas: int = Field(default=1, ge=1, le=5)

    @field_validator("nkey_file", "creds_file", "tls_ca", "tls_cert", "tls_key", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """An empty variable takes back what the file says."""
        return None if value == "" else value

    @field_validator("inbox_prefix", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object) -> object:
        return INBOX_ROOT if value == "" else value

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        if self.nkey_file is not None and self.creds_file is not None:
            raise ValueError("set nkey_file or creds_file, not both")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key belong together")
        return self

    def address(self, identity: str) -> NatsAddress:
        """The address for one identity, with an inbox of its own."""
        address = NatsAddress(
            url=self.url,
            nkey_file=self.nkey_file,
            creds_file=self.creds_file,
            tls_ca=self.tls_ca,
            tls_cert=self.tls_cert,
            tls_key=self.tls_key,
            inbox_prefix=self.inbox_prefix,
        )
        return address.for_identity(identity)


class PostgresConfig(Section):
    dsn: str = "host=127.0.0.1 port=5432 user=postgres dbname=postgres"
    migrate_dsn: str | None = None


class HealthConfig(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=9100, ge=0, le=65535)


class LogConfig(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class GatewayConfig(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)
    body_bytes_max: int = Field(default=1024 * 1024, gt=0)
    import_bytes_max: int = Field(default=1024**3, gt=0)
    fresh_timeout_s: float = Field(default=2.0, ge=0)
    heartbeat_s: float = Field(default=15.0, gt=0)
    hosts: Names = ()
    origins: Names = ()
    head_timeout_s: float = Field(default=10.0, gt=0)
    head_bytes_max: int = Field(default=32 * 1024, gt=0)
    body_timeout_s: float = Field(default=30.0, gt=0)
    connections_max: int = Field(default=2048, gt=0)
    requests_per_s: float = Field(default=500.0, gt=0)
    request_burst: int = Field(default=2000, gt=0)
    streams_max: int = Field(default=256, gt=0)
    stream_bytes_max: int = Field(default=16 * 1024 * 1024, gt=0)
    bytes_per_minute: int = Field(default=256 * 1024 * 1024, gt=0)
    metrics_url: str = ""
    """Where people look at metrics. The console links to it."""

    @field_validator("metrics_url")
    @classmethod
    def _metrics_are_a_page(cls, value: str) -> str:
        if value and not _is_page(value):
            raise ValueError(
                "metrics_url: use an address like https://metrics.example, without a user or a password"
            )
        return value

    @model_validator(mode="after")
    def _origins_are_exact(self) -> Self:
        for origin in self.origins:
            parts = urlsplit(origin)
            if (
                parts.scheme not in {"http", "https"}
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise ValueError(f"origins: {origin!r} is not like https://console.example")
        return self


def _is_page(address: str) -> bool:
    """Whether a person can open an address in a browser, and it holds no secret of somebody."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    plain = address.isprintable() and " " not in address and "\\" not in address
    return (
        plain
        and parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and "@" not in parts.netloc
    )


class IngestConfig(Section):
    cache_sessions_max: int = Field(default=1024, gt=0)
    cache_bytes_max: int = Field(default=64 * 1024 * 1024, gt=0)
    followed_sessions_max: int = Field(default=1024, ge=0)
    pending_inputs_max: int = Field(default=1000, gt=0)
    prompt_bytes_max: int = Field(default=768 * 1024, gt=0)
    attachment_inline_bytes: int = Field(default=64 * 1024, ge=0, le=512 * 1024)
    attachment_bytes_max: int = Field(default=20 * 1024 * 1024, gt=0, le=20 * 1024 * 1024)
    upload_life_s: float = Field(default=3600.0, gt=0)
    schema_bytes_max: int = Field(default=64 * 1024, gt=0)
    schema_depth_max: int = Field(default=32, gt=0, le=100)
    schema_nodes_max: int = Field(default=2_000, gt=0)


class RunnerConfig(Section):
    wake_deadline_s: float = Field(default=2.0, gt=0)
    wake_heartbeat_s: float = Field(default=0.7, gt=0)
    ping_timeout_s: float = Field(default=0.5, gt=0)
    observe_timeout_s: float = Field(default=5.0, gt=0)
    title_timeout_s: float = Field(default=30.0, gt=0)
    sessions_max: int = Field(default=256, gt=0)
    cache_sessions_max: int = Field(default=512, gt=0)
    cache_bytes_max: int = Field(default=64 * 1024 * 1024, gt=0)
    snapshot_events: int = Field(default=200, gt=0)
    grace_s: float = Field(default=20.0, gt=0)
    turns_max: int = Field(default=25, gt=0)
    recoveries_max: int = Field(default=3, ge=0)
    steers_max: int = Field(default=100, gt=0)
    calls_max: int = Field(default=64, gt=0)
    repeats_max: int = Field(default=5, gt=1)
    tools_wait_s: float = Field(default=10.0, ge=0)
    retry_attempts_max: int = Field(default=5, gt=0)
    retry_base_s: float = Field(default=0.5, ge=0)
    retry_delay_max_s: float = Field(default=300.0, ge=0)
    park_after_s: float = Field(default=5.0, ge=0)
    instructions_file: Directory | None = None
    service_transforms: bool = True
    transforms_timeout_s: float = Field(default=5.0, gt=0)
    transform_bytes_max: int = Field(default=8 * 1024 * 1024, gt=0)

    @model_validator(mode="after")
    def _heartbeat_fits_deadline(self) -> Self:
        if self.wake_heartbeat_s * 2 > self.wake_deadline_s:
            raise ValueError("wake_heartbeat_s must be at most half of wake_deadline_s")
        return self


class ProjectorConfig(Section):
    batch_commits_max: int = Field(default=500, gt=0)
    batch_bytes_max: int = Field(default=8 * 1024 * 1024, gt=0)
    cache_sessions_max: int = Field(default=1024, gt=0)
    cache_bytes_max: int = Field(default=64 * 1024 * 1024, gt=0)
    sweep_interval_s: float = Field(default=2.0, gt=0)
    sweep_age_s: float = Field(default=3.0, ge=0)
    feed_lag_s: float = Field(default=60.0, ge=0, le=300)
    asks_interval_s: float = Field(default=1.0, gt=0)


class ToolsConfig(Section):
    pool: PoolName = DEFAULT_POOL
    concurrency: int = Field(default=64, gt=0)
    cache_sessions_max: int = Field(default=512, gt=0)
    cache_bytes_max: int = Field(default=64 * 1024 * 1024, gt=0)
    image_width_max: int = Field(default=2_000, gt=0)
    image_height_max: int = Field(default=2_000, gt=0)
    image_bytes_max: int = Field(default=5 * 1024 * 1024, gt=0)
    image_resize: bool = True
    grace_s: float = Field(default=20.0, gt=0)
    builtin: bool = True
    probes: bool = False
    probe_file: str | None = None
    depth_max: int = Field(default=3, gt=0)
    location_concurrency: int = Field(default=32, gt=0)
    output_lines_max: int = Field(default=2_000, gt=0)
    output_bytes_max: int = Field(default=51_200, gt=0)
    media_bytes_max: int = Field(default=4 * 1024 * 1024, gt=0)
    spool_bytes_max: int = Field(default=64 * 1024 * 1024, gt=0)
    spool_dir: str | None = None
    snapshot_days: float = Field(default=14.0, gt=0)
    snapshot_bytes_max: int = Field(default=2 * 1024**3, gt=0)
    shell: str = "/bin/sh"
    environment: tuple[str, ...] = ()
    sandbox: Literal["auto", "bwrap", "none"] = "auto"
    sandbox_network: bool = False
    sandbox_read: tuple[str, ...] = ()
    private_directories: tuple[str, ...] = ()
    cpu_s_max: int = Field(default=3_600, ge=0)
    memory_bytes_max: int = Field(default=8 * 1024**3, ge=0)
    processes_max: int = Field(default=512, ge=0)
    file_bytes_max: int = Field(default=4 * 1024**3, ge=0)
    open_files_max: int = Field(default=8_192, ge=0)
    command_output_bytes_max: int = Field(default=1024**3, ge=0)
    web_private: bool = False
    websearch: dict[str, SearchServiceConfig] = Field(default_factory=dict)
    websearch_provider: str | None = None

    @field_validator("private_directories", mode="before")
    @classmethod
    def _split_variable(cls, value: object) -> object:
        return split_directories(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _provider_is_a_service(self) -> Self:
        if self.websearch_provider is not None and self.websearch_provider not in self.websearch:
            raise ValueError(f"websearch_provider {self.websearch_provider!r} has no section")
        return self


class LocationConfig(Section):
    """The directories that sessions may use, and the directory of sessions that name none."""

    roots: tuple[Directory, ...] = ()
    default: Directory | None = None
    snapshots: bool | None = None


class AsksConfig(Section):
    """Permission requests and questions to people. Without `expire_s` they wait for ever."""

    expire_s: float | None = Field(default=None, gt=0)


class TenantConfig(Section):
    """The limits of all sessions of a tenant together, and the recovery of its sessions."""

    cost: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    recovery: Literal["auto", "ask", "hold"] = "auto"
    mcp: dict[str, Credentials] = Field(default_factory=dict)
    location: LocationConfig = LocationConfig()
    quota: TenantQuotaConfig = TenantQuotaConfig()


class CompactionConfig(Section):
    """When a summary replaces the history of a session, and references replace old tool output."""

    auto: bool = True
    buffer: int = Field(default=20_000, ge=0)
    keep_tokens: int = Field(default=8_000, ge=0)
    summary_tokens: int = Field(default=4_096, gt=0)
    excerpt: int = Field(default=2_000, ge=0)
    prune_turns: int = Field(default=20, ge=0)
    prune_bytes: int = Field(default=4_096, ge=0)
    calibrate: bool = True
