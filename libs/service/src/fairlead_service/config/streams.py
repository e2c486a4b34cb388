"""The section of the streams: how long and how much NATS keeps. `fairlead provision` applies it."""

from typing import Final

from pydantic import Field, field_validator

from fairlead_service.config.section import Section

LOG_BYTES_MIN: Final = 8 * 16 * 1024 * 1024
"""Each shard takes the largest commit twice, and has its reserve for purges besides."""


class StreamsConfig(Section):
    """The limits of the streams. Zero means no limit."""

    log_bytes: int = Field(default=0, ge=0)
    feed_days: int = Field(default=0, ge=0)
    feed_bytes: int = Field(default=0, ge=0)
    message_id_days: int = Field(default=90, ge=0)
    output_days: int = Field(default=7, ge=0)
    output_bytes: int = Field(default=0, ge=0)
    attachment_bytes: int = Field(default=0, ge=0)
    receipt_days: int = Field(default=7, ge=0)
    receipt_bytes: int = Field(default=0, ge=0)
    dead_letter_days: int = Field(default=30, ge=0)
    dead_letter_bytes: int = Field(default=0, ge=0)
    snapshot_days: int = Field(default=0, ge=0)
    snapshot_bytes: int = Field(default=0, ge=0)

    @field_validator("log_bytes")
    @classmethod
    def _has_room(cls, value: int) -> int:
        if 0 < value < LOG_BYTES_MIN:
            raise ValueError(f"must be 0 or at least {LOG_BYTES_MIN}: a shard has an eighth of it")
        return value
