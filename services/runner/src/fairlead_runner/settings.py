"""What a runner is told."""

from dataclasses import dataclass

from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import TenantConfig
from fairlead_session.compaction import compaction
from fairlead_session.execution.budget import TenantUsage
from fairlead_session.execution.recovery import RecoveryPolicy
from fairlead_session.execution.retry import RetryPolicy
from fairlead_session.next_move import DrainLimits
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """One frozen view of the configuration."""

    config: Config

    @property
    def nats_url(self) -> str:
        return self.config.nats.url

    def limits(self, session: Session, spending: TenantUsage) -> DrainLimits:
        """What bounds a drain of this session now."""
        runner, agent = self.config.runner, self.config.agents.get(self.agent(session))
        return DrainLimits(
            turns_max=runner.turns_max,
            steps=agent.steps if agent else None,
            recoveries_max=runner.recoveries_max,
            steers_max=runner.steers_max,
            repeats_max=runner.repeats_max,
            tenant=spending,
        )

    def agent(self, session: Session) -> str:
        """The agent that speaks next."""
        return self.config.agent_name(session.profile.agent if session.profile else None)

    def model(self, session: Session) -> ModelRef | None:
        """The model that speaks next, if there is one."""
        return (session.profile.model if session.profile else None) or self.config.model_ref()

    def tenant(self, tenant: TenantId) -> TenantConfig:
        """What is configured for a tenant."""
        return self.config.tenant.get(tenant, TenantConfig())

    def policy(self, tenant: TenantId, session: Session) -> RecoveryPolicy:
        """What follows a crash: the agent's word, else the tenant's."""
        agent = self.config.agents.get(self.agent(session))
        own = agent.recovery if agent else None
        return own or self.tenant(tenant).recovery

    @property
    def compaction(self) -> compaction.CompactionPolicy:
        """When and how history is compacted."""
        return compaction.CompactionPolicy(**self.config.compaction.model_dump())

    @property
    def retries(self) -> RetryPolicy:
        runner = self.config.runner
        return RetryPolicy(
            attempts_max=runner.retry_attempts_max,
            base_s=runner.retry_base_s,
            delay_s_max=runner.retry_delay_max_s,
        )
