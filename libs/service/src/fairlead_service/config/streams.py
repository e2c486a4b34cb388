"""The section of the streams: how long and how much NATS keeps. `fairlead provision` applies it."""

from pydantic import Field

from fairlead_service.config.section import Section


class StreamsConfig(Section):
    """The limits of the streams. Zero means no limit."""

    log_bytes: int = Field(default=0, ge=0)
    feed_days: int = Field(default=0, ge=0)
    feed_bytes: int = Field(default=0, ge=0)
    message_id_days: int = Field(default=90, ge=0)
    output_days: int = Field(default=7, ge=0)
    output_bytes: int = Field(default=0, ge=0)
    receipt_days: int = Field(default=7, ge=0)
    dead_letter_days: int = Field(default=30, ge=0)
