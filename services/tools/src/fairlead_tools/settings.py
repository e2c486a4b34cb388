"""The settings of the tools service."""

from dataclasses import dataclass

from fairlead_service.config.configuration import Config


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """One frozen view of the configuration."""

    config: Config

    @property
    def nats_url(self) -> str:
        return self.config.nats.url

    @property
    def pool(self) -> str:
        return self.config.tools.pool
