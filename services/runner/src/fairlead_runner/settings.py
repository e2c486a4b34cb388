"""What a runner is told."""

from dataclasses import dataclass

from fairlead_service.config import Config
from fairlead_session.drain import Limits


@dataclass(frozen=True, slots=True)
class Settings:
    """One frozen view of the configuration."""

    config: Config

    @property
    def nats_url(self) -> str:
        return self.config.nats.url

    @property
    def limits(self) -> Limits:
        runner = self.config.runner
        return Limits(
            turns_max=runner.turns_max,
            recoveries_max=runner.recoveries_max,
            steers_max=runner.steers_max,
        )
