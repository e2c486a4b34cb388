"""The settings of ingest."""

from dataclasses import dataclass

from fairlead_schema.catalog import ModelRef
from fairlead_service.config.configuration import Config


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """One frozen view of the configuration."""

    config: Config

    @property
    def nats_url(self) -> str:
        return self.config.nats.url

    @property
    def request_timeout_s(self) -> float:
        return self.config.nats.request_timeout_s

    @property
    def cache_sessions_max(self) -> int:
        return self.config.ingest.cache_sessions_max

    @property
    def pending_inputs_max(self) -> int:
        return self.config.ingest.pending_inputs_max

    @property
    def prompt_bytes_max(self) -> int:
        return self.config.ingest.prompt_bytes_max

    @property
    def default_model(self) -> ModelRef | None:
        return self.config.model_ref()
