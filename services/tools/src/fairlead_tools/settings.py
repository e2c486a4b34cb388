"""The settings of the tools service."""

from dataclasses import dataclass

from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """One frozen view of the configuration."""

    config: Config

    @property
    def nats(self) -> NatsAddress:
        return self.config.nats.address(self.config.pools.identity(self.pool))

    @property
    def pool(self) -> str:
        return self.config.tools.pool

    @property
    def serves_tenants(self) -> bool:
        """Whether this worker answers registrations. Workers of other pools serve locations alone."""
        return self.pool == self.config.pools.default
