"""The section of traces."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from fairlead_service.config.section import Section


class TracesConfig(Section):
    """Where spans go, how many of them, and what they may hold. Without an endpoint there are none."""

    enabled: bool = True
    endpoint: str | None = Field(default=None, repr=False)
    sample_ratio: float | None = Field(default=None, ge=0, le=1)
    content: bool = False
    queue_max: int = Field(default=2048, ge=1, le=100_000)
    delay_s: float = Field(default=1.0, gt=0, le=60)
    timeout_s: float = Field(default=5.0, gt=0, le=60)
    flush_s: float = Field(default=3.0, gt=0, le=60)

    @field_validator("endpoint", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """An empty variable takes back what the file says."""
        return None if value == "" else value

    @model_validator(mode="after")
    def _endpoint_is_http(self) -> Self:
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("endpoint: write the address of a collector, http://host:4318")
        return self
