"""The settings of ingest."""

from dataclasses import dataclass, field

from fairlead_schema.catalog import ModelRef
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_service.config.configuration import Config
from fairlead_session.structured.schema_limits import SchemaLimits


@dataclass(frozen=True, slots=True)
class WakeTimings:
    """Pauses of the waker that no operator needs to change; tests shorten them."""

    retry_s: float = 0.05
    """Before a refused wake is sent again. The pause doubles up to `retry_s_max`."""
    retry_s_max: float = 1.0
    give_up_s: float = 15.0
    """After this time the sweep finds the session."""
    shutdown_s: float = 3.0
    """How long a shutdown waits for wakes that the server does not take."""
    honour_s: float = 1.0
    """A live owner honours an interrupt well within this time."""


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """One frozen view of the configuration."""

    config: Config
    wake_timings: WakeTimings = field(default_factory=WakeTimings)

    @property
    def nats(self) -> NatsAddress:
        return self.config.nats.address("ingest")

    @property
    def request_timeout_s(self) -> float:
        return self.config.nats.request_timeout_s

    @property
    def cache_sessions_max(self) -> int:
        return self.config.ingest.cache_sessions_max

    @property
    def cache_bytes_max(self) -> int:
        return self.config.ingest.cache_bytes_max

    @property
    def followed_sessions_max(self) -> int:
        return self.config.ingest.followed_sessions_max

    @property
    def patience_s(self) -> float:
        return self.config.nats.patience_s

    @property
    def pending_inputs_max(self) -> int:
        return self.config.ingest.pending_inputs_max

    @property
    def prompt_bytes_max(self) -> int:
        return self.config.ingest.prompt_bytes_max

    @property
    def schema_limits(self) -> SchemaLimits:
        ingest = self.config.ingest
        return SchemaLimits(
            ingest.schema_bytes_max, ingest.schema_depth_max, ingest.schema_nodes_max
        )

    @property
    def default_model(self) -> ModelRef | None:
        return self.config.model_ref()
