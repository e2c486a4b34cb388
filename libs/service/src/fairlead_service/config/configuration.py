"""`fairlead.toml` and `FAIRLEAD_*` variables become one frozen configuration.

A variable `FAIRLEAD_<SECTION>_<KEY>` overrides `[section] key`; `FAIRLEAD_CONFIG` names the file.
A mistake is reported with its file, its key and its reason, before anything starts.
"""

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, ValidationError, model_validator

from fairlead_schema.catalog import ModelRef
from fairlead_schema.permission import PermissionRule
from fairlead_service.config.agents import NOTHING, AgentConfig, effective
from fairlead_service.config.context import ContextConfig, ReferenceConfig, SkillsConfig
from fairlead_service.config.providers import ModelConfig, ProviderConfig
from fairlead_service.config.section import Section
from fairlead_service.config.tool_servers import Credentials, SearchServiceConfig, ToolServerConfig

PREFIX: Final = "FAIRLEAD_"
ServerName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]


class ConfigError(Exception):
    """The configuration cannot be used. Says where, which key, and why."""

    def __init__(self, origin: str, key: str, reason: str) -> None:
        super().__init__(f"{origin}: {key}: {reason}" if key else f"{origin}: {reason}")
        self.origin = origin
        self.key = key
        self.reason = reason


class NatsConfig(Section):
    url: str = "nats://127.0.0.1:4222"
    request_timeout_s: float = Field(default=5.0, gt=0)
    replicas: int = Field(default=1, ge=1, le=5)


class PostgresConfig(Section):
    dsn: str = "host=127.0.0.1 port=5432 user=postgres dbname=postgres"


class HealthConfig(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=9100, ge=0, le=65535)


class LogConfig(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class GatewayConfig(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)
    body_bytes_max: int = Field(default=1024 * 1024, gt=0)
    fresh_timeout_s: float = Field(default=2.0, ge=0)
    heartbeat_s: float = Field(default=15.0, gt=0)


class IngestConfig(Section):
    cache_sessions_max: int = Field(default=4096, gt=0)
    pending_inputs_max: int = Field(default=1000, gt=0)
    prompt_bytes_max: int = Field(default=768 * 1024, gt=0)


class RunnerConfig(Section):
    wake_deadline_s: float = Field(default=2.0, gt=0)
    wake_heartbeat_s: float = Field(default=0.7, gt=0)
    ping_timeout_s: float = Field(default=0.5, gt=0)
    observe_timeout_s: float = Field(default=5.0, gt=0)
    sessions_max: int = Field(default=256, gt=0)
    cache_sessions_max: int = Field(default=4096, gt=0)
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

    @model_validator(mode="after")
    def _heartbeat_fits_deadline(self) -> Self:
        if self.wake_heartbeat_s * 2 > self.wake_deadline_s:
            raise ValueError("wake_heartbeat_s must be at most half of wake_deadline_s")
        return self


class ProjectorConfig(Section):
    batch_commits_max: int = Field(default=500, gt=0)
    sweep_interval_s: float = Field(default=2.0, gt=0)
    sweep_age_s: float = Field(default=3.0, ge=0)
    asks_interval_s: float = Field(default=1.0, gt=0)


class ToolsConfig(Section):
    pool: str = Field(default="default", pattern=r"^[A-Za-z0-9_-]+$")
    concurrency: int = Field(default=64, gt=0)
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
    shell: str = "/bin/sh"
    environment: tuple[str, ...] = ()
    sandbox: Literal["none", "bwrap"] = "none"
    sandbox_network: bool = False
    sandbox_read: tuple[str, ...] = ()
    cpu_s_max: int | None = Field(default=None, gt=0)
    memory_bytes_max: int | None = Field(default=None, gt=0)
    processes_max: int | None = Field(default=None, gt=0)
    file_bytes_max: int | None = Field(default=None, gt=0)
    web_private: bool = False
    websearch: dict[str, SearchServiceConfig] = Field(default_factory=dict)
    websearch_provider: str | None = None

    @model_validator(mode="after")
    def _provider_is_a_service(self) -> Self:
        if self.websearch_provider is not None and self.websearch_provider not in self.websearch:
            raise ValueError(f"websearch_provider {self.websearch_provider!r} has no section")
        return self


class LocationConfig(Section):
    roots: tuple[str, ...] = ()
    default: str | None = None


class AsksConfig(Section):
    """What waits for people. Without a limit it waits for ever."""

    expire_s: float | None = Field(default=None, gt=0)


class TenantConfig(Section):
    """What a tenant may use in all, and what follows a crash in its sessions."""

    cost: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    recovery: Literal["auto", "ask", "hold"] = "auto"
    mcp: dict[str, Credentials] = Field(default_factory=dict)


class CompactionConfig(Section):
    """When a session's history becomes a summary, and old tool outputs become references."""

    auto: bool = True
    buffer: int = Field(default=20_000, ge=0)
    keep_tokens: int = Field(default=8_000, ge=0)
    summary_tokens: int = Field(default=4_096, gt=0)
    excerpt: int = Field(default=2_000, ge=0)
    prune_turns: int = Field(default=20, ge=0)
    prune_bytes: int = Field(default=4_096, ge=0)
    calibrate: bool = True


class Config(Section):
    """Everything a process may be told."""

    default_model: str | None = Field(default=None, pattern=r"^[^/]+/.+$")
    default_agent: str = "build"
    provider: dict[str, ProviderConfig] = Field(default_factory=dict)
    agent: dict[str, AgentConfig] = Field(default_factory=dict)
    permissions: tuple[PermissionRule, ...] = ()
    tenant: dict[str, TenantConfig] = Field(default_factory=dict)
    reference: dict[str, ReferenceConfig] = Field(default_factory=dict)
    location: LocationConfig = LocationConfig()
    context: ContextConfig = ContextConfig()
    skills: SkillsConfig = SkillsConfig()
    nats: NatsConfig = NatsConfig()
    postgres: PostgresConfig = PostgresConfig()
    health: HealthConfig = HealthConfig()
    log: LogConfig = LogConfig()
    gateway: GatewayConfig = GatewayConfig()
    ingest: IngestConfig = IngestConfig()
    runner: RunnerConfig = RunnerConfig()
    compaction: CompactionConfig = CompactionConfig()
    projector: ProjectorConfig = ProjectorConfig()
    tools: ToolsConfig = ToolsConfig()
    asks: AsksConfig = AsksConfig()
    mcp: dict[ServerName, ToolServerConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _defaults_exist(self) -> Self:
        if self.default_agent not in self.agents:
            raise ValueError(f"default_agent {self.default_agent!r} has no [agent] section")
        ref = self.model_ref()
        if ref is not None and self.model(ref) is None:
            raise ValueError(f"default_model {self.default_model!r} has no [provider] section")
        return self

    @cached_property
    def agents(self) -> dict[str, AgentConfig]:
        """Every agent, built in or configured, with all its rules in force."""
        return effective(self.agent, self.permissions)

    def rules(self, agent: str | None) -> tuple[PermissionRule, ...]:
        """What an agent may do. Nobody named is the default agent; one that is not there may nothing."""
        found = self.agents.get(self.agent_name(agent))
        return NOTHING if found is None else found.permissions

    @model_validator(mode="after")
    def _credentials_have_servers(self) -> Self:
        for tenant, settings in self.tenant.items():
            for name in settings.mcp.keys() - self.mcp.keys():
                raise ValueError(f"[tenant.{tenant}.mcp.{name}] has no [mcp.{name}] section")
        return self

    def model_ref(self) -> ModelRef | None:
        """The model of sessions that name none: the default, else the newest there is (O-29)."""
        if self.default_model is not None:
            provider_id, model_id = self.default_model.split("/", 1)
            return ModelRef(provider_id=provider_id, id=model_id)
        newest = max(self.models(), key=lambda one: one[1].released or date.min, default=None)
        return None if newest is None else newest[0]

    def agent_name(self, chosen: str | None) -> str:
        """The agent of a session: its own word, else the default, else one that people may choose."""
        if chosen is not None:
            return chosen
        preferred = (self.default_agent, "build", *self.agents)
        return next((name for name in preferred if self._selectable(name)), self.default_agent)

    def _selectable(self, name: str) -> bool:
        agent = self.agents.get(name)
        return agent is not None and agent.mode != "subagent" and not agent.hidden

    def models(self) -> tuple[tuple[ModelRef, ModelConfig], ...]:
        """Every configured model with its reference, in the order of the file."""
        return tuple(
            (ModelRef(provider_id=provider_id, id=model_id), model)
            for provider_id, provider in self.provider.items()
            for model_id, model in provider.model.items()
        )

    def model(self, ref: ModelRef) -> ModelConfig | None:
        """A configured model, if there is one by that reference."""
        provider = self.provider.get(ref.provider_id)
        return None if provider is None else provider.model.get(ref.id)


def load(path: Path | None, env: Mapping[str, str]) -> Config:
    """Read the file, lay the environment over it, check the whole. Raises ConfigError."""
    named = path or (Path(env["FAIRLEAD_CONFIG"]) if env.get("FAIRLEAD_CONFIG") else None)
    origin = str(named) if named else "environment"
    raw = _read(named) if named else {}
    overrides = _overrides(env)
    for path_to, variable in overrides.items():
        _lay(raw, path_to, env[variable])
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        path_to = tuple(str(part) for part in first["loc"])
        origin = overrides.get(path_to, origin)
        raise ConfigError(origin, ".".join(path_to), first["msg"]) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error


def _overrides(env: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The keys that the environment sets, and the variable of each."""
    sections = {
        name for name, field in Config.model_fields.items() if isinstance(field.default, Section)
    }
    found: dict[tuple[str, ...], str] = {}
    for variable in env:
        name = variable.removeprefix(PREFIX).lower()
        section, _, key = name.partition("_")
        if not variable.startswith(PREFIX) or name == "config":
            continue
        if section in sections and key:
            found[section, key] = variable
        elif name in {"default_model", "default_agent"}:
            found[(name,)] = variable
    return found


def _lay(raw: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    *parents, last = path
    section: Any = raw
    for parent in parents:
        section = section.setdefault(parent, {})
        if not isinstance(section, dict):
            return  # The check of the whole says what is wrong with it.
    section[last] = value
