"""`fairlead.toml` and `FAIRLEAD_*` variables become one frozen configuration.

A variable `FAIRLEAD_<SECTION>_<KEY>` overrides `[section] key`; `FAIRLEAD_CONFIG` names the file.
A mistake is reported with its file, its key and its reason, before anything starts.
"""

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import Field, StringConstraints, ValidationError, model_validator

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.quota import QuotaLimits, QuotaPolicy
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import PermissionRule
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.tools.pool_rules import PoolRules
from fairlead_service.config.agents import DENY_ALL, AgentConfig, agents_in_force
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.commands import CommandConfig, CommandName
from fairlead_service.config.context import ContextConfig, ReferenceConfig, SkillsConfig
from fairlead_service.config.hooks import HooksConfig
from fairlead_service.config.pools import PoolConfig, build_rules, check_worker
from fairlead_service.config.providers import ModelConfig, ProviderConfig
from fairlead_service.config.quota import QuotaConfig, TenantQuotaConfig, choose_limits
from fairlead_service.config.section import Section
from fairlead_service.config.sections import (
    AsksConfig,
    CompactionConfig,
    GatewayConfig,
    HealthConfig,
    IngestConfig,
    LocationConfig,
    LogConfig,
    NatsConfig,
    PostgresConfig,
    ProjectorConfig,
    RunnerConfig,
    TenantConfig,
    ToolsConfig,
)
from fairlead_service.config.streams import StreamsConfig
from fairlead_service.config.tool_servers import ToolServerConfig
from fairlead_service.config.transforms import PluginName, TransformConfig
from fairlead_service.config.variables import find_variables, lay_over
from fairlead_service.presets.preset_tables import complete_providers, suggest_model
from fairlead_service.traces.config import TracesConfig

ServerName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]


class ConfigError(Exception):
    """The configuration cannot be used. The text names the file or variable, the key, the reason."""

    def __init__(self, origin: str, key: str, reason: str) -> None:
        super().__init__(f"{origin}: {key}: {reason}" if key else f"{origin}: {reason}")
        self.origin = origin
        self.key = key
        self.reason = reason


UNKNOWN_SETTING: Final = "this release has no such setting: correct its name, or remove it"


class Config(Section):
    """The whole configuration of a process."""

    default_model: str | None = Field(default=None, pattern=r"^[^/]+/.+$")
    small_model: str | None = Field(default=None, pattern=r"^[^/]+/.+$")
    default_agent: str = "build"
    pool: tuple[PoolConfig, ...] = ()
    provider: dict[str, ProviderConfig] = Field(default_factory=dict)
    agent: dict[str, AgentConfig] = Field(default_factory=dict)
    permissions: tuple[PermissionRule, ...] = ()
    quota: QuotaConfig = QuotaConfig()
    streams: StreamsConfig = StreamsConfig()
    tenant: dict[str, TenantConfig] = Field(default_factory=dict)
    reference: dict[str, ReferenceConfig] = Field(default_factory=dict)
    command: dict[CommandName, CommandConfig] = Field(default_factory=dict)
    location: LocationConfig = LocationConfig()
    context: ContextConfig = ContextConfig()
    skills: SkillsConfig = SkillsConfig()
    nats: NatsConfig = NatsConfig()
    postgres: PostgresConfig = PostgresConfig()
    health: HealthConfig = HealthConfig()
    log: LogConfig = LogConfig()
    traces: TracesConfig = TracesConfig()
    auth: AuthConfig = AuthConfig()
    gateway: GatewayConfig = GatewayConfig()
    ingest: IngestConfig = IngestConfig()
    runner: RunnerConfig = RunnerConfig()
    compaction: CompactionConfig = CompactionConfig()
    projector: ProjectorConfig = ProjectorConfig()
    tools: ToolsConfig = ToolsConfig()
    asks: AsksConfig = AsksConfig()
    hooks: HooksConfig = HooksConfig()
    mcp: dict[ServerName, ToolServerConfig] = Field(default_factory=dict)
    transform: dict[PluginName, TransformConfig] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _lay_over_presets(cls, settings: object) -> object:
        return complete_providers(settings) if isinstance(settings, dict) else settings

    @model_validator(mode="after")
    def _defaults_exist(self) -> Self:
        if self.default_agent not in self.agents:
            raise ValueError(f"default_agent {self.default_agent!r} has no [agent] section")
        ref = self.model_ref()
        if ref is not None and self.model(ref) is None:
            raise ValueError(f"default_model {self.default_model!r} {self._why_unknown(ref)}")
        small = self.small_model_ref()
        if small is not None and self.model(small) is None:
            raise ValueError(f"small_model {self.small_model!r} {self._why_unknown(small)}")
        return self

    @model_validator(mode="after")
    def _models_of_agents_exist(self) -> Self:
        for name, agent in self.agent.items():
            ref = agent.model_ref()
            model = None if ref is None else self.model(ref)
            if ref is not None and (model is None or model.with_variant(ref.variant) is None):
                why = self._why_unknown(ref)
                raise ValueError(f"agent.{name}: model {agent.model!r} {why}")
            if ref is None and agent.variant is not None:
                raise ValueError(f"agent.{name}: variant {agent.variant!r} has no model")
        return self

    @model_validator(mode="after")
    def _agents_and_models_of_commands_exist(self) -> Self:
        for name, command in self.command.items():
            if command.agent is not None and command.agent not in self.agents:
                raise ValueError(f"command.{name}: agent {command.agent!r} has no [agent] section")
            ref = command.model_ref()
            model = None if ref is None else self.model(ref)
            if ref is not None and (model is None or model.with_variant(ref.variant) is None):
                why = self._why_unknown(ref)
                raise ValueError(f"command.{name}: model {command.model!r} {why}")
        return self

    @model_validator(mode="after")
    def _pools_fit(self) -> Self:
        check_worker(self.pools, self.tools.pool)
        return self

    @cached_property
    def pools(self) -> PoolRules:
        """The rules that give each session its pool of tool workers."""
        return build_rules(self.pool, self.tools.pool)

    @cached_property
    def agents(self) -> dict[str, AgentConfig]:
        """Every agent, built in or configured, with all its rules in force."""
        return agents_in_force(self.agent, self.permissions)

    def rules(self, agent: str | None) -> tuple[PermissionRule, ...]:
        """The rules of an agent. No name means the default agent; an unknown agent may do nothing."""
        config = self.agents.get(self.agent_name(agent))
        return DENY_ALL if config is None else config.permissions

    def roots(self, tenant: TenantId) -> tuple[str, ...]:
        """The roots of a tenant's sessions. Without roots only its default location is one."""
        own = self._tenant_location(tenant)
        if own.roots or self.location.roots:
            return own.roots or self.location.roots
        default = self.default_location(tenant)
        return () if default is None else (default,)

    def default_location(self, tenant: TenantId) -> str | None:
        """The directory of a tenant's sessions that name none, if one is configured."""
        return self._tenant_location(tenant).default or self.location.default

    def snapshots(self, tenant: TenantId) -> bool:
        """Whether steps of a tenant's sessions take snapshots of files: its own setting, else the general one."""
        own = self._tenant_location(tenant).snapshots
        chosen = self.location.snapshots if own is None else own
        return chosen is not False

    def _tenant_location(self, tenant: TenantId) -> LocationConfig:
        settings = self.tenant.get(tenant)
        return LocationConfig() if settings is None else settings.location

    @model_validator(mode="after")
    def _credentials_have_servers(self) -> Self:
        for tenant, settings in self.tenant.items():
            for name in settings.mcp.keys() - self.mcp.keys():
                raise ValueError(f"[tenant.{tenant}.mcp.{name}] has no [mcp.{name}] section")
        return self

    def quotas(self, tenant: str) -> QuotaLimits:
        """The quotas of a tenant: its own, else those of every tenant."""
        return self._quotas.get(tenant, self._quotas[None])[0]

    def principal_quotas(self, tenant: str) -> QuotaLimits:
        """The quotas of each principal of a tenant."""
        return self._quotas.get(tenant, self._quotas[None])[1]

    @property
    def quota_policy(self) -> QuotaPolicy:
        """The quotas of all tenants and their principals."""
        return QuotaPolicy(self.quotas, self.principal_quotas)

    @cached_property
    def _quotas(self) -> dict[str | None, tuple[QuotaLimits, QuotaLimits]]:
        """The quotas of every configured tenant and its principals; under None those of all others."""
        own = {name: tenant.quota for name, tenant in self.tenant.items()}
        return {
            name: (
                choose_limits(self.quota, quota),
                choose_limits(self.quota.principal, quota.principal),
            )
            for name, quota in ({None: TenantQuotaConfig()} | own).items()
        }

    def small_model_ref(self) -> ModelRef | None:
        """The model that writes titles, if one is configured."""
        if self.small_model is None:
            return None
        provider_id, model_id = self.small_model.split("/", 1)
        return ModelRef(provider_id=provider_id, id=model_id)

    def model_ref(self) -> ModelRef | None:
        """The model of a session that names none: the default model, else the newest (O-29)."""
        return self._model_ref

    @cached_property
    def _model_ref(self) -> ModelRef | None:
        if self.default_model is not None:
            provider_id, model_id = self.default_model.split("/", 1)
            return ModelRef(provider_id=provider_id, id=model_id)
        newest = max(self.models(), key=lambda entry: entry[1].released or date.min, default=None)
        return None if newest is None else newest[0]

    def model_of(self, agent: str | None, chosen: ModelRef | None) -> ModelRef | None:
        """The model of a session: the chosen one, else the agent's own, else the default (O-33)."""
        return chosen or self.agent_model(agent) or self.model_ref()

    def with_defaults(self, info: SessionInfo) -> SessionInfo:
        """A session with the agent and the model that its next turn uses, if it names none."""
        model = self.model_of(info.agent, info.model)
        return info.model_copy(update={"agent": self.agent_name(info.agent), "model": model})

    def agent_model(self, agent: str | None) -> ModelRef | None:
        """The model that an agent has of its own, if it has one."""
        config = self.agents.get(self.agent_name(agent))
        return None if config is None else config.model_ref()

    def agent_name(self, chosen: str | None) -> str:
        """The agent of a session: the chosen one, else the default, else the first selectable one."""
        return self._agent_name if chosen is None else chosen

    @cached_property
    def _agent_name(self) -> str:
        preferred = (self.default_agent, "build", *self.agents)
        return next((name for name in preferred if self._is_selectable(name)), self.default_agent)

    def _is_selectable(self, name: str) -> bool:
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
        """The configured model of a reference, if there is one."""
        provider = self.provider.get(ref.provider_id)
        return None if provider is None else provider.find_model(ref.id)

    def suggest(self, ref: ModelRef) -> str:
        """A question that names the model which was perhaps meant, or nothing."""
        provider = self.provider.get(ref.provider_id)
        preset = None if provider is None else provider.preset
        names = (model.id for model, _ in self.models() if model.provider_id == ref.provider_id)
        return suggest_model(preset, ref.id, tuple(names))

    def _why_unknown(self, ref: ModelRef) -> str:
        if self.provider.get(ref.provider_id) is None:
            return f"has no [provider.{ref.provider_id}] section"
        if self.model(ref) is not None:
            return f"has no variant {ref.variant!r}"
        return f"has no [provider.{ref.provider_id}.model] section{self.suggest(ref)}"


def load(path: Path | None, env: Mapping[str, str]) -> Config:
    """Read the file, lay the environment over it, check the whole. Raises ConfigError."""
    file = path or (Path(env["FAIRLEAD_CONFIG"]) if env.get("FAIRLEAD_CONFIG") else None)
    origin = str(file) if file else "environment"
    settings = _read_toml(file) if file else {}
    variables = find_variables(env, Config)
    for key, variable in variables.items():
        lay_over(settings, key, env[variable])
    try:
        return Config.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        key = tuple(str(part) for part in first["loc"])
        reason = UNKNOWN_SETTING if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(variables.get(key, origin), ".".join(key), reason) from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(str(path), "", error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error
