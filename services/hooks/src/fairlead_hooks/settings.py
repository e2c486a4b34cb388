"""The settings of the hooks service."""

from dataclasses import dataclass
from typing import Final

from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import Config
from fairlead_service.config.hooks import HooksConfig
from fairlead_session.webhooks.attempts import DeliveryPolicy

DEADLINE_MARGIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class HooksSettings:
    """One frozen view of the configuration."""

    config: Config
    claim_s: float = 30.0
    """How long a run that another process has begun is left to it."""

    @property
    def nats(self) -> NatsAddress:
        return self.config.nats.address("hooks")

    @property
    def hooks(self) -> HooksConfig:
        return self.config.hooks

    @property
    def auth(self) -> AuthConfig:
        return self.config.auth

    @property
    def policy(self) -> DeliveryPolicy:
        hooks = self.config.hooks
        return DeliveryPolicy(hooks.attempts_max, hooks.retry_s, hooks.retry_s_max)

    @property
    def deadline_s(self) -> float:
        """After this time another process gets an event: the one that had it is gone."""
        return self.config.hooks.timeout_s + DEADLINE_MARGIN_S
