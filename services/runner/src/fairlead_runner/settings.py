"""The settings of a runner: its configuration, and pauses that nobody configures."""

from dataclasses import dataclass, field

from fairlead_eventlog.process_life import SECOND_LOOK_S
from fairlead_schema.catalog import ModelRef
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import TenantConfig
from fairlead_session.compaction.compaction import CompactionPolicy
from fairlead_session.execution.budget import TenantUsage
from fairlead_session.execution.recovery import RecoveryPolicy
from fairlead_session.execution.retry import RetryPolicy
from fairlead_session.input.options import choose_profile
from fairlead_session.next_move import DrainLimits
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class RunnerTimings:
    """Pauses that no operator needs to change; tests shorten them."""

    log_retry_s: float = 1.0
    """Before a drain or a loop starts again after the log was unavailable."""
    owned_retry_s: float = 1.0
    """Before a wake of a session whose owner lives is delivered again."""
    interrupt_look_s: float = 2.0
    """Between two looks at the log during a stream. A nudge makes the drain look at once."""
    owner_second_look_s: float = SECOND_LOOK_S
    """Between the two looks after which the owner of a session counts as gone."""
    worker_second_look_s: float = 2.5
    """The same for a worker. A `once` call of a dead worker is lost, so this look takes its time."""
    crowded_wait_s: float = 1.0
    """How long a session may wait for workers in a runner without a free place."""
    catalog_fresh_s: float = 1.0
    usage_fresh_s: float = 1.0
    usage_kept_s: float = 30.0
    """How long the last usage of a tenant holds while the projector does not answer."""
    usage_retry_s: float = 3.0
    """Before a session that rests because of an unknown usage is woken."""


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """One frozen view of the configuration."""

    config: Config
    timings: RunnerTimings = field(default_factory=RunnerTimings)

    @property
    def nats(self) -> NatsAddress:
        return self.config.nats.address("runner")

    def limits(self, session: Session, usage: TenantUsage) -> DrainLimits:
        """The limits of a drain of this session now."""
        runner, name = self.config.runner, self.agent(session)
        agent = self.config.agents.get(name)
        return DrainLimits(
            turns_max=runner.turns_max,
            steps=agent.steps if agent else None,
            agent=name,
            recoveries_max=runner.recoveries_max,
            steers_max=runner.steers_max,
            repeats_max=runner.repeats_max,
            tenant=usage,
        )

    def agent(self, session: Session) -> str:
        """The agent of the next turn."""
        return self.config.agent_name(session.profile.agent if session.profile else None)

    def model(self, session: Session) -> ModelRef | None:
        """The model of the next turn, if one is configured."""
        profile = session.profile
        agent, model = (profile.agent, profile.model) if profile else (None, None)
        return self.config.model_of(agent, model)

    def tenant(self, tenant: TenantId) -> TenantConfig:
        """The configuration of a tenant."""
        return self.config.tenant.get(tenant, TenantConfig())

    def recovery_policy(self, tenant: TenantId, session: Session) -> RecoveryPolicy:
        """The recovery policy: the agent's own, else the tenant's."""
        agent = self.config.agents.get(self.agent(choose_profile(session)))
        own = agent.recovery if agent else None
        return own or self.tenant(tenant).recovery

    @property
    def compaction(self) -> CompactionPolicy:
        """When and how history is compacted."""
        return CompactionPolicy(**dict(self.config.compaction))

    @property
    def retries(self) -> RetryPolicy:
        runner = self.config.runner
        return RetryPolicy(
            attempts_max=runner.retry_attempts_max,
            base_s=runner.retry_base_s,
            delay_s_max=runner.retry_delay_max_s,
        )
