"""The section of webhooks and schedules."""

from pydantic import Field

from fairlead_service.config.section import Section


class HooksConfig(Section):
    """How much each tenant may register, how deliveries are tried, and when a run counts as missed."""

    webhooks_max: int = Field(default=20, ge=0)
    schedules_max: int = Field(default=100, ge=0)
    private: bool = False
    timeout_s: float = Field(default=10.0, gt=0, le=60)
    attempts_max: int = Field(default=12, ge=1, le=100)
    retry_s: float = Field(default=5.0, gt=0)
    retry_s_max: float = Field(default=3600.0, gt=0)
    concurrency: int = Field(default=8, ge=1, le=256)
    pending_max: int = Field(default=256, ge=1, le=10_000)
    late_s: float = Field(default=60.0, gt=0)
    patience_s: float = Field(default=600.0, gt=0)
    grant_days: float = Field(default=30.0, gt=0)
    refresh_s: float = Field(default=5.0, gt=0)
